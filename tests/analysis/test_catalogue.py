"""The table of all metrics, and what is generated from it."""

from __future__ import annotations

from pathlib import Path

import analysis
from analysis.catalogue import METRICS, metric
from analysis.catalogue_page import page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"

UNIT_OF_SUFFIX = {"_s": "s", "_bytes": "B", "_Bps": "B/s", "_bps": "bit/s", "_pps": "packets/s"}


def test_the_page_is_the_one_that_the_catalogue_generates() -> None:
    assert PAGE.read_text() == page()


def test_ids_carry_their_unit_as_suffix() -> None:
    for entry in METRICS.values():
        suffix = next((s for s in UNIT_OF_SUFFIX if entry.id.endswith(s)), None)
        if suffix is not None and entry.shape == "number":
            assert entry.unit == UNIT_OF_SUFFIX[suffix], entry.id


def test_the_headline_is_that_of_the_published_table() -> None:
    assert {entry.id for entry in METRICS.values() if entry.headline} == {
        "cpu_mean_rank_s", "elapsed_s", "packets", "interarrival_mean_s", "throughput_Bps", "packet_intensity_pps",
    }  # fmt: skip
    assert metric("throughput_Bps").label == "Throughput"


def test_every_metric_has_a_value_or_a_reason(mpi_capture: Path) -> None:
    """Metrics of runs, MPI calls and overhead come from trials, others from captures."""
    result = analysis.analyse(mpi_capture)
    expected = {
        entry.id
        for entry in METRICS.values()
        if entry.shape == "number"
        and entry.section in ("volume", "interarrival", "tcp", "matrices", "trust")
        and entry.id != "observer_effect"
    }
    for scope in (result.everything, result.mpi):
        assert not set(scope.metrics) & set(scope.not_available)
    assert expected == (set(result.metrics) | set(result.not_available))
    per_scope = {i for i in expected if METRICS[i].section in ("volume", "interarrival", "tcp")} - {"non_mpi_share"}
    assert per_scope <= set(result.mpi.metrics) | set(result.mpi.not_available)
    assert all(result.not_available.values())
