"""Accuracy of the network model over real studies.

RANKWIRE_VAR=DIR python -m benchmarks.predictions

DIR is an installation with experiments over several links (take a copy: its tables are brought up to date). The studies that come with
Rankwire make the data, half an hour where nothing else runs:

    for study in water ring pingpong hpl; do RANKWIRE_VAR=DIR script/run experiments/library/$study-network-quick.yaml; done

Every link of each is predicted from the trials on its other links, so that nothing of it is known, and held against what its trials
took: error of the prediction (of the geometric mean of the trials), and how many single trials lie in the interval that is to hold 90 %
of them. "Within range" leaves links out that are predicted from beyond the range that is left. Below: the predictions that people kept
and had checked, by workload and predictor.

By replay, from the one traced trial on the mildest link of each experiment with `profile: trace`, every other link is predicted too, where
SimGrid is installed and ping-pongs calibrate.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp, log
from statistics import median
from typing import TYPE_CHECKING, Final

from analysis.sensitivity import Outcome, held_out
from config.services.lease import Installation, embedded_services
from config.supervisor import child_environment

if TYPE_CHECKING:
    from analysis.conclusions.observations.needs import FittedNetwork
    from experiments.models import Experiment
    from experiments.selectors.predictions import PredictionCheck

FEWEST: Final = 12
ERROR: Final = 0.10
COVERAGE: Final = (0.80, 0.97)
_ROW: Final = "| {:<34} | {:>5} | {:>6} | {:>7} | {:>7} | {:>8} | {:>12} |"


@dataclass(frozen=True)
class Study:
    """Result of one model: of one experiment at one combination of its other factors."""

    workload: str
    slug: str
    outcomes: Sequence[Outcome]


def main() -> int:
    with installation():
        found = list(studies())
        print(_ROW.format("experiment", "links", "trials", "error", "worst", "inside", "within range"))
        print(_ROW.format(*["---"] * 7))
        for study in found:
            print(_line(f"{study.workload}: {study.slug}"[:34], study.outcomes))
        for workload in dict.fromkeys(study.workload for study in found):
            print(
                _line(
                    f"all of {workload}, by the fit", [o for s in found if s.workload == workload for o in s.outcomes]
                )
            )
        everything = [outcome for study in found for outcome in study.outcomes]
        if everything:
            print(_line("all", everything))
        _print_replays()
        print("\nkept and checked:")
        for line in _kept():
            print(line)
        return _verdict(everything)


@contextmanager
def installation() -> Iterator[None]:
    """Django on the services of the installation that RANKWIRE_VAR names."""
    place = Installation.of_environment()
    with embedded_services(place) as lease:
        os.environ |= child_environment(place, lease.state)
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield


def studies() -> Iterator[Study]:
    """The models of all experiments over links, oldest first."""
    from experiments.models import Experiment
    from experiments.selectors.network import network_study_of

    for experiment in Experiment.objects.filter(published=False).order_by("pk"):
        for fitted in network_study_of(experiment).fits:
            outcomes = held_out(fitted.fit.runs)
            if outcomes:
                name = f"{experiment.slug} {fitted.at}".strip()
                yield Study(experiment.workload, name, outcomes)


def _line(name: str, outcomes: Sequence[Outcome]) -> str:
    errors = [abs(outcome.error) for outcome in outcomes]
    between = [abs(outcome.error) for outcome in outcomes if outcome.prediction.measured]
    inside, trials = _coverage(outcomes)
    within = f"{median(between):.1%} of {len(between)}" if between else "-"
    share = f"{inside / trials:.0%}"
    return _ROW.format(name, len(outcomes), trials, f"{median(errors):.1%}", f"{max(errors):.0%}", share, within)


def _coverage(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    return sum(outcome.inside for outcome in outcomes), sum(len(outcome.seconds) for outcome in outcomes)


@dataclass(frozen=True)
class ReplayedLink:
    """A link other than the trace's: the prediction by replay, and its trials."""

    error: float
    inside: int
    trials: int


def _print_replays() -> None:
    from experiments.errors import RepositoryError
    from experiments.models import Experiment
    from experiments.selectors.network import network_study_of

    everything: list[ReplayedLink] = []
    for experiment in Experiment.objects.filter(published=False).order_by("pk"):
        for fitted in network_study_of(experiment).fits:
            try:
                links = list(_replayed(experiment, fitted))
            except RepositoryError as error:
                print(f"replay of {experiment.slug} {fitted.at}: {error}")
                continue
            everything += links
            print(_replay_line(f"replay of {experiment.slug} {fitted.at}", links))
    if everything:
        print(_replay_line("all replays", everything))


def _replayed(experiment: Experiment, fitted: FittedNetwork) -> Iterator[ReplayedLink]:
    """Raise RepositoryError if there is nothing to replay."""
    from analysis.conclusions.observations.needs import link_of
    from dashboard.background.replays import replayed
    from experiments.selectors import replays

    for point in fitted.points:
        link = link_of(point)
        if link is None or link == fitted.here or link.loss:
            continue
        want = replays.replay_inputs(experiment, link, fitted.at)
        prediction = replays.prediction_of(want, *replayed(want))
        values = want.study.asked.values(point)
        if not values:
            continue
        middle = exp(sum(map(log, values)) / len(values))
        inside = sum(prediction.holds(value) for value in values)
        yield ReplayedLink(prediction.value_s / middle - 1, inside, len(values))


def _replay_line(name: str, links: Sequence[ReplayedLink]) -> str:
    if not links:
        return f"{name}: no other link was measured"
    errors, trials = [abs(each.error) for each in links], sum(each.trials for each in links)
    share = sum(each.inside for each in links) / trials
    return f"{name}: {len(links)} links, median error {median(errors):.1%}, worst {max(errors):.0%}, {share:.0%} of {trials} trials inside"


def _kept() -> Iterator[str]:
    """A line for each workload and predictor, and one for all."""
    from experiments.models import Prediction
    from experiments.selectors.predictions import checks_of, score

    checks = list(checks_of(Prediction.objects.select_related("experiment")).values())
    groups: dict[str, list[PredictionCheck]] = {}
    for check in checks:
        name = f"{check.prediction.experiment.workload}, {check.prediction.get_predictor_display()}"
        groups.setdefault(name, []).append(check)
    for name, own in [*sorted(groups.items()), ("all", checks)]:
        reported = score(own)
        words = (
            "none"
            if reported.error is None
            else f"{reported.inside} of {reported.checked} inside, median error {reported.error:.1%}"
        )
        yield f"{name}: {words}"


def _verdict(outcomes: Sequence[Outcome]) -> int:
    if len(outcomes) < FEWEST:
        print(f"{len(outcomes)} predictions; at least {FEWEST} are needed to tell anything")
        return 1
    inside, trials = _coverage(outcomes)
    error = median(abs(outcome.error) for outcome in outcomes)
    good = error <= ERROR and COVERAGE[0] <= inside / trials <= COVERAGE[1]
    aim = f"aim: median error at most {ERROR:.0%}, {COVERAGE[0]:.0%} to {COVERAGE[1]:.0%} of the trials inside"
    print(f"{aim}: {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
