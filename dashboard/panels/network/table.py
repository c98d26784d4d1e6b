"""Saved predictions as CSV, with the base unit in the name of every column."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from experiments.models import Prediction
from experiments.selectors.export.configurations import as_csv
from experiments.selectors.predictions import PredictionCheck, checks_of

_PIECE: Final = 500
_OWN: Final = ("at", "hosts", "delay_s", "rate_bps", "loss", "value_s", "low_s", "high_s", "level", "extended")
_CHECKED: Final = ("measured_s", "error", "inside", "waiting", "other_link", "disturbed")
COLUMNS: Final = (
    *("id", "experiment", "workload", "version", "predictor", "metric", *_OWN, *_CHECKED, "trials", "made_of"),
    *("evidence_hash", "obstacle", "author", "created_at", "url"),
)
"""Columns: one-way delay; loss, level and error are shares; measured is a median."""


def as_file(predictions: QuerySet[Prediction], name: str) -> StreamingHttpResponse:
    """Return the table as a download called ``name``.csv."""
    made = StreamingHttpResponse(as_csv(_pieces(predictions), COLUMNS), content_type="text/csv; charset=utf-8")
    made["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return made


def _pieces(predictions: QuerySet[Prediction]) -> Iterator[list[dict[str, Any]]]:
    everything = iter(predictions.iterator(chunk_size=_PIECE))
    while piece := list(islice(everything, _PIECE)):
        checks = checks_of(piece)
        yield [_row(checks[row.pk]) for row in piece]


def _row(check: PredictionCheck) -> dict[str, Any]:
    prediction = check.prediction
    return {
        "id": prediction.pk,
        "experiment": prediction.experiment.slug,
        "workload": prediction.experiment.workload,
        "version": prediction.version,
        "predictor": prediction.predictor,
        "metric": prediction.metric,
        **{name: getattr(prediction, name) for name in _OWN},
        **{name: getattr(check, name) for name in _CHECKED},
        "trials": " ".join(map(str, check.trials)),
        "made_of": " ".join(map(str, prediction.evidence)),
        "evidence_hash": prediction.evidence_hash,
        "obstacle": prediction.obstacle,
        "author": prediction.author.username if prediction.author else "",
        "created_at": prediction.created_at.isoformat(),
        "url": prediction.get_absolute_url(),
    }
