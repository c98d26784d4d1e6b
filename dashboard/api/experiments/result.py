"""The whole result of an experiment, for REST and ``script/run --json``.

10 000 trials are 114 MB of JSON and ten times as much as objects, so the result is written in pieces.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import IO, Any, Final

from django.conf import settings
from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from dashboard.api.predictions import as_data
from dashboard.api.serializers import ExperimentDetailSerializer, ResultTrialSerializer
from dashboard.panels.experiment.excluded_trials import why_apart
from dashboard.panels.network.predictions import predictions_of_experiment
from dashboard.requests import concurrency_limits
from experiments import selectors
from experiments.models import Experiment, Trial
from experiments.selectors.diagnosis import answers_of
from experiments.selectors.quotas import export_limits

_PIECE: Final = 250
"""Trials that are read and written together."""
_IN_MEMORY: Final = 4 << 20
"""Bytes beyond which an answer is buffered in a file."""


def experiment_result(experiment: Experiment, request: Request | None = None) -> dict[str, Any]:
    """Return an experiment with its answer, its predictions and all current trials.

    The answer is None without trials in the statistics, and for a long experiment before its first diagnosis. Without a request,
    URLs have no host. It takes nine queries, two more for predictions, and five for each further piece of trials.
    """
    return {**_beside_trials(experiment, request), "trials": list(_trials(experiment, request))}


def result_text(
    experiment: Experiment, dumps: Callable[[Any], str], *, indent: int | None = None, request: Request | None = None
) -> Iterator[str]:
    """Yield the text of `experiment_result`, trial by trial."""
    frame = dumps({**_beside_trials(experiment, request), "trials": []})
    end = frame.rindex("[") + 1
    line, last = ("", "") if indent is None else ("\n" + 2 * indent * " ", "\n" + indent * " ")
    yield frame[:end]
    is_first = True
    for trial in _trials(experiment, request):
        yield f"{'' if is_first else ','}{line}{dumps(trial).replace(chr(10), line)}"
        is_first = False
    yield frame[end:] if is_first else last + frame[end:]


def result_answer(experiment: Experiment, request: Request) -> HttpResponseBase:
    """Return the whole result, complete before the first byte is sent.

    A long one has the limits of exports: each trial repeats its environment. Raise Busy, CannotExport.
    """
    renderer, media_type = JSONRenderer(), request.accepted_media_type

    def dumps(data: Any) -> str:
        return str(renderer.render(data, media_type), "utf-8")

    made: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(settings.VAR))  # noqa: SIM115 - closed after the answer
    indent = renderer.get_indent(media_type, {})
    check: Callable[[], None] | None = None
    with ExitStack() as slot:
        for text in result_text(experiment, dumps, indent=indent, request=request):
            made.write(text.encode())  # one by one: many at once would all be in memory first
            if check is None and made.tell() > _IN_MEMORY:
                slot.enter_context(concurrency_limits.acquire(request.user, "export"))
                check = export_limits(made, request.user.get_username())
            if check is not None:
                check()
    is_small = check is None
    made.seek(0)
    if is_small:
        return HttpResponse(made.read(), content_type=renderer.media_type)
    return FileResponse(made, content_type=renderer.media_type)


def _beside_trials(experiment: Experiment, request: Request | None) -> dict[str, Any]:
    context = {"request": request, "progress": selectors.progress_of([experiment])}
    answer = answers_of([experiment]).get(experiment.pk)
    return {
        "answer": None if answer is None else answer.to_dict(),
        "experiment": ExperimentDetailSerializer(experiment, context=context).data,
        "predictions": as_data(list(predictions_of_experiment(experiment)), request),
    }


def _trials(experiment: Experiment, request: Request | None) -> Iterator[dict[str, Any]]:
    # Rows that many trials share are read once a piece: environments are half of the result.
    related = ("configuration", "cluster", "environment", "as_array__names", "artifacts")
    trials = Trial.objects.current().filter(experiment=experiment).select_related("as_array").prefetch_related(*related)
    every = trials.order_by("position", "pk").iterator(chunk_size=_PIECE)
    while piece := list(islice(every, _PIECE)):
        for trial in piece:
            trial.experiment = experiment
        excluded = {"apart": why_apart(experiment, piece), "repeats": Trial.repeats_among(piece)}
        context: dict[str, Any] = {"request": request, **excluded}
        yield from ResultTrialSerializer(piece, many=True, context=context).data
