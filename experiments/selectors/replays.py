"""Inputs of a replay: a traced trial, its link, and calibrating ping-pongs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from statistics import fmean
from typing import Any, Final

from analysis.conclusions.observations.needs import DELAY, LOSS, RATE, FittedNetwork, link_of
from analysis.mpi.calls import Calls
from analysis.numbers import amount
from analysis.replay.calibration import Calibration, Exchange, calibrate
from analysis.replay.platform import Topology
from analysis.replay.predicted import Replayed
from analysis.replay.predicted import make_prediction as replay_prediction
from analysis.sensitivity import Link
from experiments.errors import FieldError, InvalidSpec
from experiments.files import MPI_CALLS_NAME, read_mpi_calls, read_mpi_profile
from experiments.models import Cluster, Experiment, Kind, Measurement, Prediction, State, Trial
from experiments.selectors.certificates import achieved
from experiments.selectors.network import LEVEL, NetworkStudy, modelled, stated
from experiments.specification.design import configuration_hash

NO_TRACE: Final = (
    "No trial at {link} has recorded MPI calls: set Inside MPI to “Also record the last calls” (profile: trace)."
)
NO_EXCHANGES: Final = (
    "There is no calibration: run the workload pingpong on this cluster with three or more message sizes, without loss."
)
MOST_CHECKS: Final = 3
"""Further replayed links: each takes as long as the requested one."""
_MOST_EXCHANGES: Final = 200
"""Newest ping-pongs that the calibration reads."""
_ALIKE: Final = ("link.tcp_buffer", "link.mtu", "link.emulator")
_TIME: Final = "pingpong.transfer_time_median_s"


@dataclass(frozen=True, slots=True)
class ReplayInputs:
    """The inputs of a replay, and its prediction's context."""

    experiment: Experiment
    study: NetworkStudy
    fitted: FittedNetwork
    trial: Trial
    here: Link
    there: Link
    calls: Calls
    places: tuple[int, ...]
    """The host of each rank, from 0."""
    topology: Topology
    calibration: Calibration
    exchanges: tuple[int, ...]
    """Keys of the trials that calibrated."""
    measured: tuple[tuple[Link, float], ...]
    """Other links with the geometric mean of their trials' times: replays of them estimate the error."""


def _no_trace(fitted: FittedNetwork) -> str:
    here = fitted.here
    return NO_TRACE.format(link=f"{amount(here.rate_bps, 'bit/s')} and {amount(here.delay_s, 's')} delay")


def obstacle_of(experiment: Experiment, fitted: FittedNetwork) -> str:
    """Return why an experiment cannot be replayed; empty if it can. Two queries."""
    trial = _traced(experiment, fitted)
    if trial is None:
        return _no_trace(fitted)
    return "" if _calibration(experiment.cluster, trial.configuration.parameters)[0] else NO_EXCHANGES


def replay_inputs(experiment: Experiment, link: Link, at: str = "") -> ReplayInputs:
    """Return the inputs of a replay on ``link``. Raise InvalidSpec if one is missing."""
    study, fitted = modelled(experiment, link, at)
    if link.loss != fitted.here.loss or link.loss:
        raise InvalidSpec([FieldError("loss", "a replay does not model loss: use the fit")])
    trial = _traced(experiment, fitted)
    calls = read_mpi_calls(trial) if trial else None
    tables = read_mpi_profile(trial) if trial else None
    if trial is None or calls is None or tables is None:
        raise _refused(_no_trace(fitted))
    calibration, exchanges = _calibration(experiment.cluster, trial.configuration.parameters)
    if calibration is None:
        raise _refused(NO_EXCHANGES)
    parameters = trial.configuration.parameters
    return ReplayInputs(
        experiment, study, fitted, trial, _link_of(trial) or fitted.here, link, calls, _places(tables["ranks"]),
        "two sites" if parameters.get("link.topology") == "two sites" else "star", calibration, exchanges,
        _others(study, fitted, link),
    )  # fmt: skip


def prediction_of(want: ReplayInputs, replayed: Replayed, assumed: Sequence[str], *, author: Any = None) -> Prediction:
    """Return an unsaved prediction of a replay. Raise StaleTrial."""
    key = want.trial.configuration.hash
    points = {configuration_hash(want.experiment.workload, p.parameters): p for p in want.fitted.points if link_of(p)}
    times = {digest: want.study.question.values(point) for digest, point in points.items()}
    predicted = replay_prediction(
        replayed, times[key], [content for content in times.values() if len(content)], want.calibration.scatter, LEVEL
    )
    prediction = stated(
        want.experiment, want.study, want.fitted, want.there, author=author, predictor=Prediction.Predictor.REPLAY,
        value_s=predicted.value, low_s=predicted.low, high_s=predicted.high, level=LEVEL, extended=False,
        calibration={
            "trial": want.trial.pk,
            "window_s": replayed.window_s,
            "replayed_here_s": replayed.here_s,
            "replayed_there_s": replayed.there_s,
            "delay_s": want.here.delay_s,
            "rate_bps": want.here.rate_bps,
            **{name: value for name, value in asdict(want.calibration).items() if name != "exchanges"},
            "exchanges": list(want.exchanges),
            "checks": [
                {"delay_s": link.delay_s, "rate_bps": link.rate_bps, **asdict(check)}
                for (link, _), check in zip(want.measured, replayed.checks, strict=True)
            ],
            "error_of_changes": predicted.error,
            "assumed": list(assumed),
        },
    )  # fmt: skip
    content = {**prediction.calibration, "fit": prediction.evidence_hash}
    prediction.evidence_hash = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return prediction


def _others(study: NetworkStudy, fitted: FittedNetwork, there: Link) -> tuple[tuple[Link, float], ...]:
    """Return at most MOST_CHECKS other loss-free links, slowest first."""
    links = []
    for point in fitted.points:
        link, seconds = link_of(point), study.question.values(point)
        if link is not None and not link.loss and link not in (fitted.here, there) and len(seconds):
            links.append((link, exp(fmean(map(log, seconds)))))
    links.sort(key=lambda link: -link[1])
    return tuple(links[:: max(1, -(-len(links) // MOST_CHECKS))])


def _traced(experiment: Experiment, fitted: FittedNetwork) -> Trial | None:
    """Return the first counted trial on the mildest link with stored calls."""
    keys = [
        configuration_hash(experiment.workload, point.parameters)
        for point in fitted.points
        if link_of(point) == fitted.here
    ]
    trials = Trial.objects.counted().filter(experiment=experiment, configuration__hash__in=keys)
    traced = trials.filter(artifacts__name=MPI_CALLS_NAME, artifacts__removed_at=None)
    return traced.select_related("configuration").order_by("pk").first()


def _calibration(cluster: Cluster | None, alike: Mapping[str, Any]) -> tuple[Calibration | None, tuple[int, ...]]:
    """Return the calibration of the newest sufficient experiment, and its trials.

    Links must be ``alike`` except for delay and rate; load and software change between experiments.
    """
    rows = Measurement.objects.filter(
        trial__experiment__workload="pingpong",
        trial__cluster=cluster,
        trial__kind=Kind.MEASURED,
        trial__state=State.FINISHED,
        trial__certificate__kept=True,
        metric=_TIME,
        scope=Measurement.Scope.ALL,
    ).select_related("trial__configuration")
    exchanges_by_experiment: dict[int, dict[int, Exchange]] = {}
    for row in rows.order_by("-trial__experiment_id", "-trial_id")[:_MOST_EXCHANGES]:
        parameters, link = row.trial.configuration.parameters, _link_of(row.trial)
        same = all(parameters.get(name) == alike.get(name) for name in _ALIKE)
        if link is not None and same and not parameters.get("all_sizes") and not parameters.get("link.jitter"):
            exchange = Exchange(link, int(parameters["message_bytes"]), row.value)
            exchanges_by_experiment.setdefault(row.trial.experiment_id, {})[row.trial_id] = exchange
    for exchanges in exchanges_by_experiment.values():
        if (calibration := calibrate(list(exchanges.values()))) is not None:
            return calibration, tuple(sorted(exchanges))
    return None, ()


def _link_of(trial: Trial) -> Link | None:
    """Return the certified link of a trial, with its requested loss."""
    built = achieved(trial.certificate or {})
    if DELAY not in built or not built.get(RATE):
        return None
    return Link(max(0.0, built[DELAY]), built[RATE], float(trial.configuration.parameters.get(LOSS) or 0.0))


def _places(ranks: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return the host number of each rank, in order of appearance."""
    hosts: dict[str, int] = {}
    return tuple(
        hosts.setdefault(str(row["host"]), len(hosts))
        for row in sorted(ranks, key=lambda rank_row: int(rank_row["rank"]))
    )


def _refused(sentence: str) -> InvalidSpec:
    return InvalidSpec([FieldError("predictor", sentence)])
