"""Answers and facts of all published and quick studies pass the checks."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from analysis.conclusions import answer
from experiments import workloads
from experiments.library import built_in, load_defaults
from experiments.models import Cluster, Experiment, Trial, TrialResult
from experiments.selectors.diagnosis import diagnosis_of
from experiments.selectors.question import question_of
from experiments.selectors.study import study_of
from experiments.specification import parse_yaml
from tests.analysis.conclusions.checks import check, check_facts
from tests.kept_rows import PUBLISHED_STUDIES

PUBLISHED = ("guster-2007-water", "pinning-2007-wan", "monarc-1999-readers", "eadline-2006-hpl", "york-staging")
QUICK = [file for file in built_in() if file.stem.endswith("-quick")]
TYPICAL = {
    "elapsed_s": 5.0,
    "cpu_mean_rank_s": 2.0,
    "cpu_imbalance": 0.4,
    "packets": 2e4,
    "payload_bytes": 2e7,
    "throughput_bps": 9e7,
    "throughput_Bps": 1.1e7,
    "port_peak_10ms_bps": 1.5e8,
    "packet_intensity_pps": 4e3,
    "packet_size_mean_bytes": 900.0,
    "small_packet_share": 0.4,
    "pure_ack_share": 0.3,
    "interarrival_mean_s": 2.5e-4,
    "interarrival_cv": 8.0,
    "iteration_period_s": 0.02,
    "rtt_median_s": 3e-3,
    "connections": 6.0,
    "retransmitted_segments": 400.0,
    "retransmitted_bytes": 5e5,
    "context_switches_involuntary": 300.0,
}
"""Values that trigger many rules."""


def said_of(experiment: Experiment) -> list[str]:
    question = question_of(experiment, study_of(experiment))
    diagnosis = diagnosis_of(experiment)
    assert diagnosis.answer.sentence == answer(question).sentence
    return [*check(diagnosis.answer, question), *check_facts(diagnosis.facts, diagnosis.answer)]


@pytest.mark.parametrize("slug", PUBLISHED)
def test_conclusions_of_a_published_study_pass_the_checks(db: None, empty_redis: object, slug: str) -> None:
    PUBLISHED_STUDIES.restore()
    assert said_of(Experiment.objects.get(slug=slug)) == []


@pytest.mark.parametrize("file", QUICK, ids=lambda file: file.stem)
@pytest.mark.parametrize("scatter", [0.01, 0.3])
def test_conclusions_of_a_quick_study_pass_the_checks(
    db: None, empty_redis: object, file: Path, scatter: float
) -> None:
    experiment = Experiment.submit(parse_yaml(file.read_text()), project=load_defaults())
    chance = random.Random(file.stem)
    while trial := Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1"):
        trial.start_running(command=["mpirun"], conditions={"cores": 2})
        trial.start_analysing()
        size = 1 + 0.2 * trial.configuration.hosts + chance.random() * 0.1 * trial.configuration.position
        figures = {f.id: 0.5 if f.unit == "share" else 3.0 for f in workloads.get(experiment.workload).figures}
        values = {
            metric: typical if metric.endswith("share") else typical * size * chance.lognormvariate(0, scatter)
            for metric, typical in {**TYPICAL, **figures}.items()
        }
        trial.finish(TrialResult({"all": values}, {}, "good"))
    assert said_of(experiment) == []
    assert "traffic" in {fact.fold for fact in diagnosis_of(experiment).facts}, "the rules had something to say"
