"""Network studies: experiments over links, their models and predictions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

from django.db.models import Count, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform

from analysis.conclusions import Answer, ExperimentQuestion, answer
from analysis.conclusions.observations.needs import DELAY, FEWEST_LEVELS, LOSS, RATE, FittedNetwork, fits_of, link_of
from analysis.numbers import SHARE, amount, rounded
from analysis.sensitivity import CARRIED, Fit, Link, predict
from experiments.access import visible_experiments
from experiments.errors import FieldError, InvalidSpec, StaleTrial
from experiments.models import UNFINISHED, Experiment, Kind, Measurement, Prediction, Trial
from experiments.selectors.question import question_of
from experiments.selectors.study import study_of
from experiments.specification.design import configuration_hash

LEVEL: Final = 0.9
DELAYS_S: Final = (0.0, 10.0)
RATES_BPS: Final = (1e3, 1e13)
LOSSES: Final = (0.0, 0.999)
_LEVELS: Final = (("delays", DELAY), ("rates", RATE))
_SAME: Final = 0.02
_SAME_DELAY_S: Final = 5e-6
"""Links that differ by less use the configuration that was measured."""
_AS_HERE: Final = 0.05
_AS_HERE_S: Final = 50e-6
"""Tolerance of properties that were not swept: the scatter of certificates."""
_TOO_FAST: Final = 1.05
_BUILT_S: Final = 20e-6
_BUILT: Final = 0.25
"""Tolerance of a delay, and most share of it."""
_LEAST_EMULATED_S: Final = 1e-6
_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class NetworkStudy:
    """The answer and the models of an experiment over links."""

    question: ExperimentQuestion
    answer: Answer
    fits: Sequence[FittedNetwork]
    """Empty if too few trials have ended."""


def network_studies(user: Any) -> QuerySet[Experiment]:
    """Return visible experiments with enough delays or rates, newest first."""
    levels = {
        name: Count(
            KeyTextTransform(parameter, "configurations__parameters"),
            filter=Q(configurations__in_design=True),
            distinct=True,
        )
        for name, parameter in _LEVELS
    }
    counted = Experiment.objects.filter(published=False).annotate(**levels)
    enough = counted.filter(Q(delays__gte=FEWEST_LEVELS) | Q(rates__gte=FEWEST_LEVELS)).order_by()
    # By key: columns of type json cannot be grouped.
    return visible_experiments(user).filter(pk__in=enough.values("pk")).order_by("-created_at", "-pk")


def network_study_of(experiment: Experiment) -> NetworkStudy:
    """Return answer and models of the current trials, without traffic: 10 to 50 ms."""
    question = question_of(experiment, study_of(experiment, with_traffic=False))
    return NetworkStudy(question, answer(question), fits_of(question))


def carried(fit: Fit) -> Fit:
    """Return the fit with the number of parameter sets that pages use."""
    return replace(fit, draws=fit.draws.first(CARRIED))


def make_prediction(experiment: Experiment, link: Link, at: str = "", *, author: Any = None) -> Prediction:
    """Return an unsaved prediction of a trial on ``link`` from the current trials.

    ``at`` names the combination of the other factors. Raise InvalidSpec, StaleTrial.
    """
    study, fitted = modelled(experiment, link, at)
    _require_swept(fitted, link)
    return stated(experiment, study, fitted, link, author=author, **_predicted(fitted, link))


def modelled(experiment: Experiment, link: Link, at: str) -> tuple[NetworkStudy, FittedNetwork]:
    """Return the study and its model at a combination of factors. Raise InvalidSpec."""
    study = network_study_of(experiment)
    fitted = next((fit for fit in study.fits if fit.at == at), None)
    if fitted is None:
        combinations = ", ".join(fit.at or "the only combination: leave this empty" for fit in study.fits)
        raise InvalidSpec(
            [FieldError("at", f"there is no model of {at or 'that'}; known: {combinations or 'none yet'}")]
        )
    _require_link(link)
    return study, fitted


def stated(
    experiment: Experiment, study: NetworkStudy, fitted: FittedNetwork, link: Link, *, author: Any = None, **fields: Any
) -> Prediction:
    """Return an unsaved prediction with these further fields. Raise StaleTrial."""
    evidence, digest = _evidence(experiment, study, fitted)
    return Prediction(
        experiment=experiment,
        cluster=experiment.cluster,
        version=experiment.version,
        metric=study.question.deciding.metric,
        at=fitted.at,
        hosts=int(fitted.points[0].parameters["hosts"]),
        delay_s=link.delay_s,
        rate_bps=link.rate_bps,
        loss=link.loss,
        evidence=evidence,
        evidence_hash=digest,
        author=author,
        **fields,
        **_checked_by(experiment, fitted, link),
    )


def _predicted(fitted: FittedNetwork, link: Link) -> dict[str, Any]:
    """Return the model's prediction as fields."""
    predicted = predict(carried(fitted.fit), link, level=LEVEL)
    ends = predicted.elapsed.interval
    return {
        "value_s": predicted.elapsed.value,
        "low_s": ends.low,
        "high_s": ends.high,
        "level": LEVEL,
        "extended": not predicted.measured,
    }


def _checked_by(experiment: Experiment, fitted: FittedNetwork, link: Link) -> dict[str, Any]:
    """Return the checking configuration and its ended trials, or the obstacle."""
    if obstacle := _obstacle(experiment, fitted, link):
        return {"obstacle": obstacle}
    parameters = _configuration(fitted, link)
    key = configuration_hash(experiment.workload, parameters)
    trials = Trial.objects.filter(experiment=experiment, configuration__hash=key, kind=Kind.MEASURED)
    ended = trials.exclude(state__in=UNFINISHED).order_by("pk").values_list("pk", flat=True)
    return {"parameters": parameters, "configuration_hash": key, "ended": list(ended)}


def _require_link(link: Link) -> None:
    """Raise InvalidSpec for values that no link has."""
    for field, value, (least, most), unit in (
        ("delay", link.delay_s, DELAYS_S, "s"),
        ("rate", link.rate_bps, RATES_BPS, "bit/s"),
        ("loss", link.loss, LOSSES, SHARE),
    ):
        if not least <= value <= most:
            raise InvalidSpec([FieldError(field, f"must be from {amount(least, unit)} to {amount(most, unit)}")])


def _require_swept(fitted: FittedNetwork, link: Link) -> None:
    """Raise InvalidSpec for a change of a property that was never varied."""
    here = fitted.here
    rows = (
        ("delay", DELAY, "s", link.delay_s, here.delay_s, _AS_HERE_S),
        ("rate", RATE, "bit/s", link.rate_bps, here.rate_bps, 0.0),
        ("loss", LOSS, "share", link.loss, here.loss, 1e-9),
    )
    refused = [
        FieldError(field, f"was not swept: the model knows only {amount(current, unit)}")
        for field, name, unit, requested, current, slack in rows
        if len({point.parameters.get(name) for point in fitted.points}) == 1
        and abs(requested - current) > max(slack, _AS_HERE * current)
    ]
    if refused:
        raise InvalidSpec(refused)


def _evidence(experiment: Experiment, study: NetworkStudy, fitted: FittedNetwork) -> tuple[list[int], str]:
    """Return the keys of the fitted trials, and the SHA-256 of their links and times."""
    links = {configuration_hash(experiment.workload, point.parameters): link_of(point) for point in fitted.points}
    values = Measurement.objects.counted().in_statistics()
    rows = values.filter(
        trial__experiment=experiment,
        trial__configuration__hash__in=[key for key, link in links.items() if link],
        metric=study.question.deciding.metric,
        scope=Measurement.Scope.ALL,
    ).order_by("trial_id")
    measured = list(rows.values_list("trial_id", "trial__configuration__hash", "value"))
    if sorted(value for *_, value in measured) != sorted(fitted.fit.runs.elapsed.tolist()):
        raise StaleTrial("Trials of this experiment ended in the meantime: try again.")
    used = [(trial, links[key], value) for trial, key, value in measured]
    text = json.dumps([[trial, link.delay_s, link.rate_bps, link.loss, value] for trial, link, value in used if link])
    return [trial for trial, *_ in measured], hashlib.sha256(text.encode()).hexdigest()


def _added(fitted: FittedNetwork) -> tuple[float, float]:
    """Return delays (s) that bare links have and that emulated links add."""
    delays = [(float(p.parameters.get(DELAY) or 0.0), p.link[DELAY]) for p in fitted.points if DELAY in p.link]
    plain = [certified for requested, certified in delays if not requested]
    made = [certified - requested for requested, certified in delays if requested]
    least = max(0.0, median(plain or made)) if delays else 0.0
    return least, max(least, median(made)) if made else least


def _obstacle(experiment: Experiment, fitted: FittedNetwork, link: Link) -> str:
    """Return why the cluster cannot build ``link``; empty if it can."""
    cluster = experiment.cluster
    if cluster is None or not {"delay", "bandwidth"} <= cluster.traits.emulates:
        return "Only clusters that emulate links can build this network; this experiment's cluster does not."
    most, (least, made) = cluster.traits.most_certified_bps, _added(fitted)
    if most is not None and link.rate_bps > _TOO_FAST * most:
        fastest = amount(most, "bit/s", 3)
        return (
            f"Links of {cluster.name} can be certified up to {fastest}: a faster network can be predicted, not built."
        )
    slack = min(_BUILT_S, _BUILT * link.delay_s)
    if link.delay_s < made - slack and abs(link.delay_s - least) > slack:
        words = f"a delay of {amount(least, 's', 2)}, or of at least {amount(made, 's', 2)} if it is emulated"
        return f"Links of {cluster.name} have {words}: this network cannot be built."
    return ""


def _configuration(fitted: FittedNetwork, link: Link) -> dict[str, Any]:
    """Return the parameters of trials whose certificates come near ``link``."""
    least, made = _added(fitted)
    emulated = [delay for p in fitted.points if (delay := float(p.parameters.get(DELAY) or 0.0))]
    rates = [(float(p.parameters[RATE]), p.link.get(RATE)) for p in fitted.points if p.parameters.get(RATE)]
    share = median([certified / requested for requested, certified in rates if certified] or [1.0])
    added = max(_LEAST_EMULATED_S, link.delay_s - made)
    is_bare = abs(link.delay_s - least) <= max(made - link.delay_s, _SAME_DELAY_S)
    delay = _near(added, emulated, _SAME_DELAY_S) if emulated and not is_bare else 0.0
    rate = _near(link.rate_bps / share, [requested for requested, _ in rates], 0.0)
    return {**fitted.points[0].parameters, DELAY: delay, RATE: rate, LOSS: link.loss}


def _near(value: float, levels: Sequence[float], slack: float) -> float:
    """Return an earlier level within the scatter of certificates, or round."""
    nearest = min(levels, key=lambda level: abs(level - value))
    if abs(nearest - value) <= max(slack, _SAME * nearest):
        return nearest
    return float(rounded(value, _DIGITS))
