"""Saved predictions: the list with its score, and the page of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import F

from analysis import numbers
from dashboard.labels import workload_title
from dashboard.panels.network.model import link_words
from experiments.metrics import find
from experiments.models import Experiment, Prediction, State, Trial
from experiments.models.states import disturbed
from experiments.selectors.certificates import achieved
from experiments.selectors.predictions import (
    MOST_SCORED,
    PredictionCheck,
    PredictionScore,
    checks_of,
    score,
    seconds_of,
    visible_predictions,
)

MOST_ROWS = 50


def predictions_of(experiment: Experiment, user: Any) -> dict[str, Any]:
    """The newest predictions of an experiment, and scores visible to ``user``."""
    visible = visible_predictions(user).filter(experiment__published=False)[:MOST_SCORED]
    checks = checks_of(
        {prediction.pk: prediction for prediction in [*predictions_of_experiment(experiment), *visible]}.values()
    )
    of_experiment = [check for check in checks.values() if check.prediction.experiment_id == experiment.pk]
    of_workload = [check for check in checks.values() if check.prediction.experiment.workload == experiment.workload]
    return {
        "rows": [row(check) for check in of_experiment[:MOST_ROWS]],
        "scores": [
            line
            for name, several in (
                ("This experiment", of_experiment),
                (workload_title(experiment.workload), of_workload),
                ("All workloads", checks.values()),
            )
            for line in _scores(name, list(several))
        ],
    }


def _scores(name: str, checks: Sequence[PredictionCheck]) -> list[tuple[str, str]]:
    """Return a line for each predictor that was checked."""
    used = sorted({check.prediction.predictor for check in checks})
    lines = [
        (predictor, score_words(score(c for c in checks if c.prediction.predictor == predictor))) for predictor in used
    ]
    return [(f"{name}, {predictor}" if len(used) > 1 else name, words) for predictor, words in lines if words]


def predictions_of_experiment(experiment: Experiment) -> Iterable[Prediction]:
    """Return the predictions of one experiment, newest first."""
    return Prediction.objects.filter(experiment=experiment).select_related("experiment", "author")[:MOST_SCORED]


def score_words(score: PredictionScore) -> str:
    """Return "3 of 4 inside their 90 % interval, median error 6 %", or ""."""
    if score.error is None:
        return ""
    error = numbers.amount(score.error, numbers.SHARE, 2)
    return f"{score.inside} of {score.checked} inside their 90{numbers.NARROW}% interval, median error {error}"


def row(check: PredictionCheck) -> dict[str, Any]:
    """Return a line of the list."""
    prediction = check.prediction
    tone, words = _verdict(check)
    return {
        "prediction": prediction,
        "link": network_words(prediction),
        "at": prediction.at,
        "predictor": prediction.get_predictor_display(),
        "predicted": numbers.amount(prediction.value_s, "s", 3),
        "interval": numbers.between(prediction.low_s, prediction.high_s, "s"),
        "measured": numbers.NOTHING if check.measured_s is None else numbers.amount(check.measured_s, "s", 3),
        "error": numbers.NOTHING if check.error is None else numbers.percent_change(1 + check.error),
        "tone": tone,
        "verdict": words,
    }


def network_words(prediction: Prediction) -> str:
    """Return "350 µs, 700 Mbit/s", with its loss if any."""
    words = link_words(prediction.link)
    return f"{words}, {numbers.amount(prediction.loss, numbers.SHARE)} loss" if prediction.loss else words


def _verdict(check: PredictionCheck) -> tuple[str, str]:
    if check.waiting:
        return "run", f"{numbers.plural(check.waiting, 'trial')} to come"
    if check.inside is not None:
        return ("ok", "inside") if check.inside else ("bad", "outside")
    if check.disturbed:
        return "warn", "disturbed"
    if check.other_link:
        return "warn", "on another link"
    return ("warn", "no result") if check.trials else ("", "not checked")


def one(prediction: Prediction) -> dict[str, Any]:
    """Contents of the page of one prediction."""
    check = checks_of([prediction])[prediction.pk]
    return {
        **row(check),
        "check": check,
        "quantity": find(prediction.metric).label,
        "answer": answer_words(check),
        "level": numbers.amount(prediction.level, numbers.SHARE),
        "trials": [_trial(row) for row in _rows(check)],
        "evidence": len(prediction.evidence),
        "calibration": calibration_words(prediction),
    }


def answer_words(check: PredictionCheck) -> str:
    """Return two sentences: the prediction with its basis, and its check."""
    prediction, result = check.prediction, row(check)
    made = "replaying a trial" if prediction.calibration else "a fit"
    beyond = ", beyond the measured links" if prediction.extended else ""
    of = numbers.plural(len(prediction.evidence), "trial")
    share = numbers.amount(prediction.level, numbers.SHARE)
    first = (
        f"Predicted: {result['predicted']}, and {result['interval']} for {share} of trials, by {made} of {of}{beyond}."
    )
    return f"{first} {_came_of(check, result)}"


def _came_of(check: PredictionCheck, result: Mapping[str, Any]) -> str:
    if check.waiting:
        return f"{numbers.plural(check.waiting, 'trial')} queued to check it."
    if check.inside is not None:
        trials, position = numbers.plural(len(check.seconds), "trial"), "inside" if check.inside else "outside"
        return f"Measured: {result['measured']}, median of {trials}, {position} of that interval; the prediction is {result['error']} off."
    if check.disturbed:
        slowed = numbers.plural(check.disturbed, "trial")
        return f"Not checked: other load slowed {slowed} on this link. Build and check it again on idle machines."
    if check.other_link:
        return "Later trials ran on a different link, so they do not check it."
    if check.trials:
        return "The trials to check it gave no result."
    return check.prediction.obstacle or "Not checked: no trial has run on this link since."


def calibration_words(prediction: Prediction) -> list[tuple[str, str]]:
    """Return the inputs of a replay as names and words; empty for a fit."""
    calibration = prediction.calibration
    if not calibration:
        return []
    replayed = f"{numbers.amount(calibration['replayed_here_s'], 's', 3)} for {numbers.amount(calibration['window_s'], 's', 3)} measured"
    overhead = f"{numbers.amount(calibration['overhead_s'], 's', 2)} more per message"
    share = f"{numbers.amount(calibration['rate_share'], numbers.SHARE, 3)} of the rate"
    error = numbers.amount(calibration.get("error_of_changes", 0.0), numbers.SHARE, 2)
    large = f"large messages wait {numbers.times(calibration['large_times'])} as long"
    scatter = numbers.amount(calibration["scatter"], numbers.SHARE, 2)
    rows = [
        ("Replayed", f"trial {calibration['trial']}; on its link {replayed}"),
        ("Links, by ping-pongs", f"{overhead}, {share}, {large}; scatter {scatter}"),
    ]
    if calibration.get("checks"):
        links = numbers.plural(len(calibration["checks"]), "other link")
        rows.append(("Error of a change", f"{error}, from {links} replayed"))
    return [*rows, *(("Assumed", sentence) for sentence in calibration["assumed"])]


def _rows(check: PredictionCheck) -> Iterable[Mapping[str, Any]]:
    values = F("measurements__value")
    of_metric = {"measurements__metric": check.prediction.metric, "measurements__scope": "all"}
    rows = Trial.objects.filter(pk__in=check.trials).annotate(is_disturbed=disturbed()).order_by("pk")
    trials = rows.values("pk", "state", "certificate", "is_disturbed")
    seconds = dict(Trial.objects.filter(pk__in=check.trials, **of_metric).order_by().values_list("pk", values))
    metric = check.prediction.metric
    return [
        {**trial, "seconds": seconds_of(seconds[trial["pk"]], metric) if trial["pk"] in seconds else None}
        for trial in trials
    ]


def _trial(trial: Mapping[str, Any]) -> dict[str, Any]:
    certificate = trial["certificate"] or {}
    built = achieved(certificate)
    units = {"link.delay": "s", "link.bandwidth": "bit/s"}
    parts = [numbers.amount(built[name], unit, 3) for name, unit in units.items() if name in built]
    return {
        "pk": trial["pk"],
        "state": State(trial["state"]),
        "is_disturbed": trial["is_disturbed"],
        "seconds": numbers.NOTHING if trial["seconds"] is None else numbers.amount(trial["seconds"], "s", 3),
        "built": ", ".join(parts) or numbers.NOTHING,
        "other_link": certificate.get("kept") is False,
    }
