"""Imported reports and captures are marked and compared with own trials."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments import metrics
from experiments.exchange.intake import import_file
from experiments.library import load_defaults
from experiments.models import Experiment, TrialResult
from experiments.selectors.comparison import compare
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.experiments import factories
from tests.experiments.exchange import reports

START_NS = 1_700_000_000_000_000_000
SECOND_NS = 10**9


@pytest.fixture
def directory(tmp_path: Path, db: None, session_directory: Path) -> Path:
    load_defaults()
    return tmp_path


def capture() -> bytes:
    """Ten frames of 160 bytes in nine seconds, 100 bytes of data each."""
    contents = [tcp(seq=1 + 100 * n, flags=0x18, payload=b"x" * 106) for n in range(10)]
    return pcapng([Frame.whole(START_NS + n * SECOND_NS, ethernet(ipv4(each))) for n, each in enumerate(contents)])


def brought(directory: Path, name: str, content: str) -> Experiment:
    (directory / name).write_text(content)
    (arrival,) = import_file(directory / name, project=load_defaults()).arrivals
    assert arrival.stored is not None
    return arrival.stored


def against_own(theirs: Experiment, metric: str, own_value: float) -> tuple[list[float], str]:
    """Return the medians of an imported and an own configuration, and their unit."""
    own = factories.experiment(name="Own", sweep={"hosts": [1]}, repetitions=1)
    factories.finished(TrialResult({"all": {metric: own_value}}, {}, "good"))
    person = factories.person("root", is_superuser=True)
    points = [f"c:{each.configurations.earliest('position').pk}" for each in (theirs, own)]
    (row,) = (each for each in compare(person, points).rows if each.metric == metric)
    return [each.median for each in row.summaries if each is not None], row.unit


@pytest.mark.parametrize(
    ("report", "tool", "trials", "metric", "value", "unit"),
    [
        (reports.reframe, "ReFrame 4.10.4", 2, "reframe.bandwidth_bytes_per_s", 940.5e6, "B/s"),
        (reports.ramble, "Ramble", 2, "ramble.total_time_s", 12.5, "s"),
        (reports.talp, "TALP of DLB 3.5.0", 1, "mpi_parallel_efficiency", 0.8, "share"),
    ],
)
def test_import_of_a_report_makes_comparable_trials(
    directory: Path, report: Callable[[], Any], tool: str, trials: int, metric: str, value: float, unit: str
) -> None:
    theirs = brought(directory, "report.json", json.dumps(report()))
    assert (theirs.is_imported, theirs.origin["tool"], theirs.trials.count()) == (True, tool, trials)
    first = theirs.trials.earliest("position")
    assert first.measurements.get(metric=metric).value == value
    assert metrics.find(metric).unit == unit
    assert against_own(theirs, metric, 2 * value) == ([value, 2 * value], unit)


def test_import_of_a_capture_takes_figures_of_an_unknown_program(directory: Path) -> None:
    (directory / "wire.pcapng").write_bytes(capture())
    theirs = brought(
        directory,
        "measured.yaml",
        "name: Weather\nworkload: wrf\ncluster: Hawk\nparameters: {hosts: 2, grid: fine}\n"
        "trials:\n  - {capture: wire.pcapng, figures: {elapsed_s: 9.5}}\n",
    )
    values = dict(theirs.trials.get().measurements.filter(scope="all").values_list("metric", "value"))
    record = {name: values[name] for name in ("elapsed_s", "packets", "wire_bytes", "duration_s", "connections")}
    assert record == {"elapsed_s": 9.5, "packets": 10, "wire_bytes": 1600, "duration_s": 9, "connections": 1}
    assert theirs.is_imported
    assert against_own(theirs, "wire_bytes", 3200) == ([1600, 3200], "B")
