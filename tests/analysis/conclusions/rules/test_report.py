"""The report as a whole: verdicts, slices, JSON and text."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from analysis import conclusions
from analysis.conclusions import find
from analysis.scaling import Point, Study
from tests.analysis.scaling.studies import published_water, simulated, usl_time

_LIMITED = simulated({"elapsed_s": usl_time(300, 0.3, 0.04)}, noise=0.01)


@pytest.mark.parametrize(
    ("study", "verdict", "words"),
    [
        (
            simulated({"elapsed_s": lambda n: 1 + 300 / n}, noise=0.01),
            "scales",
            "It scales to 12 hosts, the most measured",
        ),
        (_LIMITED, "limited", "Scaling stops at 4 hosts"),
        (simulated({"elapsed_s": lambda n: 60 + 100 / n}, noise=0.01), "limited", "most of the added hosts is lost"),
        (simulated({"elapsed_s": lambda n: 100.0}), "unclear", "No clear change"),
        (simulated({"elapsed_s": lambda n: 100.0}, hosts=(4,)), "unclear", "Only 4 hosts measured"),
        (Study([Point({"hosts": 2}, {}, excluded={"failed": 3})]), "failed", "No trial finished"),
        (Study([Point({"hosts": 2}, {})]), "unclear", "No trial has been counted yet."),
        (Study([]), "unclear", "No trial has been counted yet."),
    ],
)
def test_it_gives_one_of_four_verdicts(study: Study, verdict: str, words: str) -> None:
    report = find(study)
    assert report.verdict.verdict == verdict
    assert words in report.verdict.sentence


def test_it_is_json_and_the_same_every_time() -> None:
    for study in (_LIMITED, published_water()):
        first = json.dumps(find(study).to_dict(), allow_nan=False)
        assert first == json.dumps(find(study).to_dict(), allow_nan=False)
        assert json.loads(first)["verdict"]["verdict"] == "limited"


def test_a_sweep_of_two_parameters_is_read_slice_by_slice() -> None:
    slow = [replace(p, parameters={**p.parameters, "link": "slow"}) for p in _LIMITED.points]
    fast_study = simulated({"elapsed_s": lambda n: 1 + 300 / n}, noise=0.01)
    fast = [replace(p, parameters={**p.parameters, "link": "fast"}) for p in fast_study.points]
    report = find(Study([*slow, *fast]))
    assert [dict(s.where) for s in report.slices] == [{"link": "slow"}, {"link": "fast"}]
    assert report.verdict.sentence == (
        "How it scales with hosts depends on the other parameters: limited (best 4) at link = slow; scales (best 12) at link = fast."
    )
    assert {f.where["link"] for f in report.group("scaling")} == {"slow", "fast"}


def test_slices_that_agree_say_so_once() -> None:
    points = [replace(p, parameters={**p.parameters, "seed": s}) for s in (1, 2) for p in _LIMITED.points]
    assert find(Study(points)).verdict.sentence.startswith("In all 2 slices: Scaling stops at 4 hosts")


def test_a_sweep_without_a_size_axis_has_no_scaling_findings() -> None:
    points = [
        Point({"hosts": 2, "delay_s": d}, {"elapsed_s": [10 + d, 10.1 + d, 9.9 + d], "small_packet_share": [0.5] * 3})
        for d in (0.0, 4.0, 16.0)
    ]
    report = find(Study(points))
    assert report.group("scaling") == ()
    assert {f.rule for f in report.findings} == {"small_packets"}


def test_the_public_face_stays() -> None:
    assert {"find", "Report", "Finding", "Evidence", "Verdict", "RULES"} <= set(conclusions.__all__)
    assert all(rule.__doc__ for rule in conclusions.RULES.values())


def test_captures_that_are_all_flagged_are_not_said_to_be_missing() -> None:
    flagged = [replace(point, trust={"degraded": 3}) for point in _LIMITED.points]
    assert "No capture can be trusted fully, so nothing can be said about the wire." in find(Study(flagged)).cannot_tell
    assert "No packets were captured, so nothing can be said about the wire." in find(_LIMITED).cannot_tell
