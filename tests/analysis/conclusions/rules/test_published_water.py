"""Findings of table A of the published studies (issue 7)."""

from __future__ import annotations

import pytest

from analysis.conclusions import Finding
from analysis.conclusions.rules.report import find
from tests.analysis.scaling.studies import published_water
from tests.words import plain

_STATEMENTS = {
    "cpu_scaling": "CPU time per rank falls by 2.8 times from 2 to 12 hosts (142 s to 50.2 s).",
    "cpu_falls_time_rises": "From 4 to 12 hosts CPU time per rank falls 45 % while elapsed time rises 32 %: "
    "the added time is off the CPU.",
    "packet_step": "Packets rise 2.5 times from 4 to 6 hosts (191 000 to 471 000).",
    "packet_size": "Mean packet size at 2 to 12 hosts (6 sizes) is 600 to 736 B (throughput / packet intensity).",
    "rows_disagree": "The 12-host row's packet intensity and inter-arrival time disagree by 2.1 %: "
    "1 / 439 µs is 2 280 packets/s, the table has 2 230.",
}


def _by_rule() -> dict[str, Finding]:
    return {f.rule: f for f in find(published_water()).findings}


def test_it_says_exactly_what_the_numbers_bear() -> None:
    assert {rule: plain(f.statement) for rule, f in _by_rule().items()} == _STATEMENTS


def test_every_finding_has_evidence_a_chart_and_something_to_try() -> None:
    for finding in _by_rule().values():
        assert finding.evidence
        assert finding.chart
        assert finding.next_step.endswith((".", ":"))
        assert finding.strength == "printed"


def test_the_evidence_holds_the_numbers_of_the_statement() -> None:
    step = _by_rule()["packet_step"]
    assert {(e.size, e.value) for e in step.evidence if e.metric == "packets"} >= {(4.0, 191377), (6.0, 470706)}
    disagree = {e.label: e.value for e in _by_rule()["rows_disagree"].evidence}
    # packets x inter-arrival is the elapsed time (264.85 s), packets / intensity is not
    assert disagree["Packets x inter-arrival"] == pytest.approx(264.7, abs=0.1)
    assert disagree["Packets / intensity"] == pytest.approx(270.3, abs=0.1)


def test_a_known_bandwidth_adds_that_the_link_is_not_full() -> None:
    report = find(published_water(link_bandwidth_bps=1e9, capture_at="host"))
    (load,) = (finding for finding in report.findings if finding.group == "network")
    assert (
        plain(load.statement)
        == "The link is not full at 2 to 12 hosts (6 sizes): at most 1.1 % of 1 Gbit/s on average."
    )
