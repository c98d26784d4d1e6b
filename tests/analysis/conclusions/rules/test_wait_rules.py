"""Findings from explained waits."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.conclusions import Finding
from analysis.conclusions.rules.report import find
from analysis.scaling import Study
from tests.analysis.scaling.studies import simulated
from tests.words import plain

RULES = {
    *(
        "late_senders",
        "waits_on_full_links",
        "waits_for_lost_packets",
        "waits_for_closed_windows",
        "waits_without_core",
    ),
}


def _study(**shares: Any) -> Study:
    """Six sizes; ``shares`` of the waiting time by cause."""
    values = {"elapsed_s": 100.0, "cpu_mean_rank_s": 50.0, "mpi_wait_share": 0.3}
    values |= {f"mpi_wait_{cause}_share": share for cause, share in shares.items()}
    truth = {name: (lambda n, v=value: v) for name, value in values.items()}
    return simulated(truth, noise=0.001)


def _findings(study: Study) -> list[Finding]:
    return [finding for finding in find(study).findings if finding.rule in RULES]


def _changed(study: Study, **values: list[float]) -> Study:
    for point in study.points:
        for name, value in values.items():
            point.values[name] = value
    return study


def _with_ranks(study: Study, waited_for: list[float]) -> Study:
    return _changed(
        study,
        mpi_waiting_rank=[3.0] * 5,
        mpi_waiting_rank_share=[0.41] * 5,
        mpi_waited_for_rank=waited_for,
        mpi_waited_for_share=[0.92] * 5,
    )


def test_it_names_the_rank_that_waits_and_the_one_that_sends_late() -> None:
    (finding,) = _findings(_with_ranks(_study(late_sender=0.9), [2.0] * 5))
    assert plain(finding.statement).startswith(
        "Rank 3 waits 41 % of its MPI window, 92 % of it because rank 2 sends late at "
    )
    assert finding.explains == pytest.approx(0.27, rel=0.01)
    assert finding.strength == "strong"


def test_it_names_no_rank_where_the_ranks_differ_between_trials() -> None:
    (finding,) = _findings(_with_ranks(_study(late_sender=0.9), [2.0, 1.0, 2.0, 2.0, 2.0]))
    assert plain(finding.statement).startswith(
        "Ranks wait 30 % of the MPI window in receives and collectives, 90 % of it because others send late"
    )


@pytest.mark.parametrize(
    ("cause", "rule", "words"),
    [
        ("line_rate", "waits_on_full_links", "80 % of it because the link is full."),
        (
            "closed_window",
            "waits_for_closed_windows",
            "80 % of it because a receiver's TCP window was closed.",
        ),
        ("no_core", "waits_without_core", "80 % of it because a rank was descheduled."),
        ("retransmission", "waits_for_lost_packets", "80 % of it for retransmissions of lost packets."),
    ],
)
def test_it_says_what_the_network_did_while_ranks_waited(cause: str, rule: str, words: str) -> None:
    (finding,) = _findings(_study(**{cause: 0.8, "late_sender": 0.1}))
    assert finding.rule == rule
    assert words in plain(finding.statement)


@pytest.mark.parametrize("changed", [{"mpi_wait_share": [0.05] * 5}, {"mpi_wait_late_sender_share": [0.4] * 5}])
def test_it_is_silent_about_short_waits_and_small_causes(changed: dict[str, list[float]]) -> None:
    assert not _findings(_changed(_study(late_sender=0.9), **changed))


def test_long_waits_without_a_measured_cause_are_a_finding() -> None:
    def waits(study: Study) -> list[Finding]:
        return [finding for finding in find(study).findings if finding.rule == "mpi_waits"]

    blocked = {"elapsed_s": lambda n: 100.0, "mpi_blocked_share": lambda n: 0.9}
    (finding,) = waits(simulated(blocked, noise=0.001))
    assert plain(finding.statement).startswith("Ranks wait for messages for 90 % of the MPI window")
    assert not waits(simulated(blocked, noise=0.001, point={"disturbed": 5}))
    assert not waits(simulated(blocked | {"mpi_descheduled_inside_share": lambda n: 0.6}, noise=0.001))
    assert not waits(simulated({**blocked, "mpi_blocked_share": lambda n: 0.3}, noise=0.001))
