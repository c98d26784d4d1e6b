"""An experiment with everything measured, as REST tells it: ``GET experiments/SLUG/result/`` and ``script/run --json``.

Ten thousand trials are 114 MB of JSON and ten times that as objects, so it is written in pieces of some trials each.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
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
from dashboard.panels.network.predictions import own_predictions
from experiments import selectors
from experiments.models import Experiment, Trial
from experiments.selectors.diagnosis import answers_of

_PIECE: Final = 250
"""Trials that are read and written together."""
_IN_MEMORY: Final = 4 << 20
"""Bytes beyond which an answer lies in a file while it is made and sent."""


def experiment_result(experiment: Experiment, request: Request | None = None) -> dict[str, Any]:
    """Return an experiment with its answer, the predictions that were kept of it, and all its current trials, each as
    ``GET trials/ID/`` does, in nine queries, two more where there are predictions, and five for each further piece of the trials.

    The answer is None where no trial counts yet, and for a long experiment whose answer nobody has asked for.

    Without a request its addresses begin at the root of whatever server there is.
    """
    return {**_beside_trials(experiment, request), "trials": list(_trials(experiment, request))}


def result_text(
    experiment: Experiment, dumps: Callable[[Any], str], *, indent: int | None = None, request: Request | None = None
) -> Iterator[str]:
    """Yield what ``dumps`` (which indents by ``indent``) makes of `experiment_result`, a trial at a time."""
    whole = dumps({**_beside_trials(experiment, request), "trials": []})
    end = whole.rindex("[") + 1
    line, last = ("", "") if indent is None else ("\n" + 2 * indent * " ", "\n" + indent * " ")
    yield whole[:end]
    is_first = True
    for trial in _trials(experiment, request):
        yield f"{'' if is_first else ','}{line}{dumps(trial).replace(chr(10), line)}"
        is_first = False
    yield whole[end:] if is_first else last + whole[end:]


def result_answer(experiment: Experiment, request: Request) -> HttpResponseBase:
    """Return the whole result as an answer. It is there before the first byte is sent, so that it is whole or an error."""
    renderer, media_type = JSONRenderer(), request.accepted_media_type

    def dumps(data: Any) -> str:
        return str(renderer.render(data, media_type), "utf-8")

    made: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(settings.VAR))  # noqa: SIM115 - closed after the answer
    indent = renderer.get_indent(media_type, {})
    for text in result_text(experiment, dumps, indent=indent, request=request):
        made.write(text.encode())  # one by one: many at once would all be in memory first
    is_small = made.tell() <= _IN_MEMORY
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
        "predictions": as_data(list(own_predictions(experiment)), request),
    }


def _trials(experiment: Experiment, request: Request | None) -> Iterator[dict[str, Any]]:
    # What many trials share is read once for a piece of them: the facts of their environment are half of the result.
    beside = ("configuration", "cluster", "environment", "as_array__names", "artifacts")
    trials = Trial.objects.current().filter(experiment=experiment).select_related("as_array").prefetch_related(*beside)
    every = trials.order_by("position", "pk").iterator(chunk_size=_PIECE)
    while piece := list(islice(every, _PIECE)):
        for trial in piece:
            trial.experiment = experiment
        known = {"apart": why_apart(experiment, piece), "repeats": Trial.repeats_among(piece)}
        context: dict[str, Any] = {"request": request, **known}
        yield from ResultTrialSerializer(piece, many=True, context=context).data
