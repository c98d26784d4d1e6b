"""Findings from time inside MPI, which replace those from CPU time."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.conclusions import Finding
from analysis.conclusions.rules.report import find
from analysis.scaling import Study, time_breakdown
from tests.analysis.scaling.studies import simulated
from tests.words import plain


def _study(**changed: Any) -> Study:
    """Six sizes with a good profile; ``changed`` values of metrics, and facts."""
    facts = {name: changed.pop(name) for name in ("cores", "kind") if name in changed}
    good = {
        "elapsed_s": 100.0, "cpu_mean_rank_s": 99.0, "cpu_imbalance": 0.5, "mpi_window_s": 90.0, "mpi_useful_s": 900.0,
        "mpi_useful_max_rank_s": 89.0, "mpi_load_balance": 0.98, "mpi_communication_efficiency": 0.95,
        "mpi_parallel_efficiency": 0.93, "mpi_useful_share": 0.9, "mpi_no_core_share": 0.01,
    }  # fmt: skip
    truth = {name: (value if callable(value) else (lambda n, v=value: v)) for name, value in (good | changed).items()}
    return simulated(truth, noise=0.001, **facts)


def _findings(study: Study, rule: str) -> list[Finding]:
    return [finding for finding in find(study).findings if finding.rule == rule]


def test_it_names_the_rank_that_others_wait_for() -> None:
    study = _study(mpi_load_balance=lambda n: 0.8 if n == 4 else 0.97)
    for point in study.points:
        point.values["mpi_busiest_rank"] = [5.0] * 5
    (finding,) = _findings(study, "mpi_load_imbalance")
    assert plain(finding.statement) == (
        "The load is uneven at 4 hosts: rank 5 spends 25 % more time outside MPI than the mean; the others wait for it in MPI."
    )
    assert not _findings(study, "load_imbalance"), "CPU time is not used if the trial has a profile"


@pytest.mark.parametrize(
    ("changed", "rule", "words"),
    [
        (
            {"mpi_useful_s": lambda n: 300.0 + 60 * n},
            "computation_grows",
            "all ranks together spend 143 % more time outside MPI",
        ),
        (
            {"processor_instructions": lambda n: 1e12 * (1 + 0.05 * n)},
            "instructions_grow",
            "execute 45 % more instructions outside MPI: ranks repeat work",
        ),
        ({"processor_frequency_hz": lambda n: 3.5e9 - 5e7 * n}, "frequency_falls", "the clock of the cores"),
        ({"mpi_descheduled_share": 0.2}, "mpi_no_core", "were descheduled, runnable without a CPU core, for 20 %"),
        ({"mpi_no_core_share": 0.2}, "mpi_blocked_outside", "off the CPU outside MPI for 20 %"),
        ({"mpi_transfer_efficiency": 0.6}, "transfer_costs", "The link costs 40 % of the MPI window at"),
        ({"mpi_serialisation_efficiency": 0.7}, "serialisation_costs", "wait for each other for 30 %"),
    ],
)
def test_it_reports_what_costs_time(changed: dict[str, Any], rule: str, words: str) -> None:
    (finding,) = _findings(_study(**changed), rule)
    assert words in plain(finding.statement)
    assert finding.strength == "strong"
    assert not _findings(_study(), rule)


def test_work_of_a_thousandth_of_the_time_is_no_finding() -> None:
    small = {"mpi_useful_max_rank_s": 0.09, "mpi_useful_share": 0.0005, "mpi_no_core_share": 0.0001}
    study = _study(
        mpi_useful_s=lambda n: 0.3 + 0.06 * n,
        mpi_load_balance=0.5,
        processor_instructions=lambda n: 1e9 * (1 + 0.05 * n),
        processor_frequency_hz=lambda n: 3.5e9 - 5e7 * n,
        processor_ipc=lambda n: 2.0 if n < 8 else 1.0,
        **small,
    )
    rules = {"mpi_load_imbalance", "computation_grows", "instructions_grow", "ipc_falls", "frequency_falls"}
    assert not rules & {finding.rule for finding in find(study).findings}


def test_falling_ipc_names_the_memory_and_its_cost() -> None:
    memory = _study(
        processor_instructions=1e12,
        processor_ipc=lambda n: 2.0 if n < 8 else 1.0,
        processor_cache_misses=lambda n: 1e9 * n,
    )
    (finding,) = _findings(memory, "ipc_falls")
    assert "fall by 50 %" in plain(finding.statement)
    assert "Cache misses per instruction grow" in plain(finding.statement)
    assert finding.explains == pytest.approx(0.5 * 0.91, rel=0.02)
    assert not {"instructions_grow", "frequency_falls"} & {finding.rule for finding in find(memory).findings}


@pytest.mark.parametrize("factor", [0.95, 1.0, 1.3])
def test_counters_that_hardly_fall_or_rise_are_no_finding(factor: float) -> None:
    study = _study(
        processor_instructions=lambda n: 1e12 / (1 if n == 2 else factor),
        processor_ipc=lambda n: 2.0 * (1 if n == 2 else factor),
        processor_frequency_hz=lambda n: 3e9 * (1 if n == 2 else factor),
    )
    assert not {"instructions_grow", "ipc_falls", "frequency_falls"} & {
        finding.rule for finding in find(study).findings
    }


def test_computation_does_not_grow_between_points_of_one_size() -> None:
    study = _study(mpi_useful_s=lambda n: 300.0 + 60 * n)
    for point in study.points:
        point.parameters["hosts"] = 2
    assert not _findings(study, "computation_grows")


def test_it_says_how_long_ranks_on_shared_cores_lacked_one() -> None:
    study = _study(cores=2, mpi_no_core_share=0.5, mpi_descheduled_share=0.31, mpi_descheduled_inside_share=0.12)
    (finding,) = _findings(study, "oversubscribed")
    assert "descheduled for 31 % (outside MPI) and 12 % (in MPI) of the MPI window at" in plain(finding.statement)
    assert not _findings(study, "mpi_no_core")


def test_lacking_cores_are_stated_of_the_largest_size_outside_and_in_mpi() -> None:
    study = _study(mpi_descheduled_share=lambda n: {4: 0.6, 8: 0.3}.get(n, 0.01), mpi_descheduled_inside_share=0.2)
    (finding,) = _findings(study, "mpi_no_core")
    assert "for 30 % (outside MPI) and 20 % (in MPI) of the MPI window at 8 hosts" in plain(finding.statement)


def test_sizes_with_a_core_for_each_rank_are_apart_from_those_without() -> None:
    study = _study(cores=4, mpi_descheduled_share=0.3, mpi_descheduled_inside_share=0.5)
    (shared,), (apart,) = _findings(study, "oversubscribed"), _findings(study, "mpi_no_core")
    assert "at 12 hosts" in plain(shared.statement)
    assert "at 2 hosts" in plain(apart.statement)


def test_ranks_that_sleep_lack_no_core() -> None:
    asleep = _study(cores=2, mpi_no_core_share=0.9, mpi_descheduled_share=0.0, mpi_blocked_outside_share=0.9)
    (finding,) = _findings(asleep, "mpi_blocked_outside")
    assert finding.evidence[0].metric == "mpi_blocked_outside_share"
    assert not any("descheduled" in finding.statement for finding in find(asleep).findings)


def test_the_breakdown_rests_on_the_profile_where_every_size_has_one() -> None:
    row = time_breakdown(_study())[0]
    assert row.profiled
    assert row.parallel_efficiency == pytest.approx(0.93, rel=0.01)
    assert row.off_cpu_s == pytest.approx(0.1 * 90, rel=0.1)
    assert row.off_cpu_share == pytest.approx(0.1, rel=0.02)
    assert row.no_core_share == pytest.approx(0.01, rel=0.02)
    partly = _study()
    del partly.points[0].values["mpi_parallel_efficiency"]
    assert not any(row.profiled for row in time_breakdown(partly))


def test_serialisation_on_shared_cores_is_weak_evidence() -> None:
    (finding,) = _findings(_study(cores=2, mpi_serialisation_efficiency=0.5), "serialisation_costs")
    assert finding.strength == "weak"
    assert "share cores" in finding.caveat
