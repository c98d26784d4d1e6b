"""The report as a whole: verdicts, slices, JSON and text."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from analysis.conclusions import ExperimentQuestion, answer
from analysis.conclusions.rules.report import find
from analysis.scaling import Point, Study
from tests.analysis.conclusions.designs import HOSTS, MOLECULES, TIME, asks, points
from tests.analysis.scaling.studies import published_water, simulated, usl_time

_LIMITED = simulated({"elapsed_s": usl_time(300, 0.3, 0.04)}, noise=0.01)


@pytest.mark.parametrize(
    ("study", "verdict", "words"),
    [
        (
            simulated({"elapsed_s": lambda n: 1 + 300 / n}, noise=0.01),
            "scales",
            "12 hosts, the most measured, are best",
        ),
        (_LIMITED, "limited", "4 hosts"),
        (simulated({"elapsed_s": lambda n: 60 + 100 / n}, noise=0.01), "limited", "of the ideal"),
        (simulated({"elapsed_s": lambda n: 100.0}), "limited", "2 hosts are enough"),
        (simulated({"elapsed_s": lambda n: 100.0}, hosts=(4,)), "unclear", "only 4 hosts finished"),
        (Study([Point({"hosts": 2}, {}, excluded={"failed": 3})]), "failed", "No trial finished"),
        (Study([Point({"hosts": 2}, {})]), "unclear", "No trial has finished yet."),
        (Study([]), "unclear", "No trial has finished yet."),
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
        "Scaling with hosts depends on the other parameters: limited at 4 with link = slow; still scales at 12 with link = fast."
    )


def test_a_sweep_without_a_size_axis_has_no_scaling_findings() -> None:
    points = [
        Point({"hosts": 2, "delay_s": d}, {"elapsed_s": [10 + d, 10.1 + d, 9.9 + d], "small_packet_share": [0.5] * 3})
        for d in (0.0, 4.0, 16.0)
    ]
    report = find(Study(points))
    assert {f.rule for f in report.findings} == {"small_packets"}


def test_captures_that_are_all_flagged_are_not_said_to_be_missing() -> None:
    flagged = [replace(point, trust={"degraded": 3}) for point in _LIMITED.points]
    assert (
        "All captures are flagged or missing, so the network traffic is not known." in find(Study(flagged)).cannot_tell
    )
    assert "No packets were captured, so the network traffic is not known." in find(_LIMITED).cannot_tell


@pytest.mark.parametrize(("most_hosts", "are_limited"), [(1, False), (4, True), (None, True)])
def test_only_clusters_of_several_hosts_are_limited_by_virtual_ones(most_hosts: int | None, are_limited: bool) -> None:
    limits = find(replace(_LIMITED, cores=2, most_hosts=most_hosts)).cannot_tell
    assert any(words.startswith("All hosts are virtual hosts") for words in limits) == are_limited


@pytest.mark.parametrize(("growth", "verdict", "best"), [(1, "scales", 12), (10, "limited", None)])
def test_weak_scaling_is_judged_by_its_efficiency(growth: float, verdict: str, best: float | None) -> None:
    report = find(simulated({"elapsed_s": lambda n: 100 + growth * n}, noise=0.01, kind="weak"))
    assert (report.verdict.verdict, report.verdict.best_size) == (verdict, best)


def test_the_verdict_is_the_answer_to_what_the_experiment_asks() -> None:
    question = replace(asks([HOSTS], {}, own_time="loop_s"), points=_LIMITED.points)
    assert find(_LIMITED, question=question).verdict.sentence == answer(question).sentence


def test_verdict_of_a_slice_agrees_with_the_answer() -> None:
    for seed in range(6):
        noise = np.random.default_rng(seed)
        typical = {(hosts, m): m * (1.03 - 0.02 * hosts / 4) for hosts in (1, 2, 4) for m in range(1, 7)}
        own_points = points([HOSTS, MOLECULES], typical)
        for point in own_points:
            point.values["elapsed_s"] = list(point.values["elapsed_s"][1] * noise.lognormal(0, 0.03, 5))
        request = ExperimentQuestion(own_points, TIME, [HOSTS, MOLECULES])
        enough = {
            f.where["molecules"]: f.value
            for f in answer(request).figures
            if f.name == "enough" and "molecules" in f.where
        }
        verdicts = {s.where["molecules"]: s.verdict.best_size for s in find(Study(own_points), question=request).slices}
        assert enough
        assert {m: verdicts[m] for m in enough} == enough
