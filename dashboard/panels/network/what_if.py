"""Contents of the network page of one experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from analysis import sensitivity
from analysis.conclusions import key_figures
from analysis.conclusions.context import ExperimentQuestion
from analysis.conclusions.observations.needs import FittedNetwork, link_of
from analysis.conclusions.sentences.answers import other_load
from analysis.numbers import amount, between, times
from dashboard.charts.network import Named, Timed, network_map, over_delay
from dashboard.charts.parts import Figure, Scale
from dashboard.panels.network.best_size import best_size
from dashboard.panels.network.model import CHANGES, as_json, held_out_table, link_effects, link_words, sliders
from dashboard.states import STRENGTH
from experiments.selectors.network import NetworkStudy, carried

_SAME_RATE = 0.05
"""Rates that differ by less count as one: certificates scatter."""


def what_if(study: NetworkStudy, named: Sequence[Named] = ()) -> dict[str, Any]:
    """Contents of the page; ``fits`` is empty if too few trials have ended."""
    context: dict[str, Any] = {
        "answer": study.answer,
        "other_load": _other_load(study.question),
        "strength": STRENGTH[study.answer.strength],
        "key_figures": key_figures(
            study.answer, study.question.factors, is_rate=study.question.deciding.higher_is_better
        ),
        "fits": [],
        "is_time": study.question.deciding.seconds is not None,
        "quantity": study.question.deciding.label,
    }
    if not study.fits:
        return context
    quantity = study.question.deciding.label
    fits = [replace(fit, fit=carried(fit.fit)) for fit in study.fits]
    x, y = _scales(fits)
    model = {
        "fits": [as_json(fit) for fit in fits],
        "changes": [{"delay": c.delay, "rate_times": c.rate_times, "rate": c.rate} for c in CHANGES],
        "exponents": {"delay": x.exponent, "elapsed": y.exponent},
    }
    return context | {
        "fits": fits,
        "first": fits[0],
        "here": link_words(fits[0].here),
        "prediction": _prediction(fits[0]),
        "bought": link_effects(fits[0].fit, fits[0].here),
        "held_out": held_out_table(fits[0]),
        "stops": best_size(fits, named, quantity),
        "sliders": sliders(fits),
        "others": _others(fits),
        "last": len(fits) - 1,
        "model": model,
        "curves": [_curve(study, fit, x, y) for fit in fits],
        "maps": [network_map(fit.fit, fit.here, named, quantity=quantity, leads=_answer_at(fit)) for fit in fits],
    }


def _other_load(question: ExperimentQuestion) -> str:
    """Return how many counted trials other load slowed and the next step, or ""."""
    points = question.measured()
    slowed, counted = sum(point.disturbed for point in points), sum(len(question.values(point)) for point in points)
    return " ".join(other_load(slowed, 0, counted)) if slowed else ""


def _answer_at(fitted: FittedNetwork) -> str:
    """Return the address of the page for a link, with * for rate and delay."""
    others = urlencode({"at": fitted.at}).replace("*", "%2A") if fitted.at else ""
    return f"?rate=*&delay=*{others and '&'}{others}#sliders"


def _prediction(fitted: FittedNetwork) -> dict[str, str]:
    here = fitted.here
    predicted = sensitivity.predict(fitted.fit, here)
    low, high = predicted.elapsed.interval.low, predicted.elapsed.interval.high
    return {
        "elapsed": amount(predicted.elapsed.value, "s", 3),
        "interval": between(low, high, "s"),
        "against": times(1.0),
        "delay": amount(here.delay_s, "s", 3),
        "rate": amount(here.rate_bps, "bit/s", 3),
        "loss": amount(here.loss, "share"),
    }


def _others(fits: Sequence[FittedNetwork]) -> str:
    if len(fits) < 2:
        return ""
    return "Hosts" if set(fits[0].where) == {"hosts"} else "Combination"


def _scales(fits: Sequence[FittedNetwork]) -> tuple[Scale, Scale]:
    delays = [float(fitted.fit.runs.delay.max()) for fitted in fits]
    times = [float(value) for fitted in fits for value in fitted.fit.runs.elapsed]
    return Scale.of(delays, "s"), Scale.of(times, "s")


def _curve(study: NetworkStudy, fitted: FittedNetwork, x: Scale, y: Scale) -> Figure:
    unit_s = study.question.deciding.seconds or 1.0
    here: list[Timed] = []
    others: list[Timed] = []
    for point in fitted.points:
        link = link_of(point)
        if link is None:
            continue
        is_same = abs(link.rate_bps / fitted.here.rate_bps - 1) < _SAME_RATE and link.loss == fitted.here.loss
        (here if is_same else others).append(
            Timed(link.delay_s, [unit_s * v for v in study.question.values(point)], point.key)
        )
    rate, quantity = amount(fitted.here.rate_bps, "bit/s", 3), study.question.deciding.label
    return over_delay(here, others, rate, x, y, quantity=quantity)
