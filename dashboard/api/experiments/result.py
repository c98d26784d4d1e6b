"""An experiment with everything measured, as REST tells it: ``GET experiments/SLUG/result/`` and ``script/run --json``."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from dashboard.api.predictions import as_data
from dashboard.api.serializers import ExperimentDetailSerializer, ResultTrialSerializer, with_everything
from dashboard.experiment.not_counted import why_apart
from dashboard.network.predictions import own_predictions
from experiments import selectors
from experiments.models import Experiment, Trial
from experiments.selectors.diagnosis import answers_of


def experiment_result(experiment: Experiment, request: Request | None = None) -> dict[str, Any]:
    """Return an experiment with its answer, the predictions that were kept of it, and all its current trials, each as
    ``GET trials/ID/`` does, in six queries, and two more where there are predictions.

    The answer is None where no trial counts yet, and for a long experiment whose answer nobody has asked for.

    Without a request its addresses begin at the root of whatever server there is.
    """
    trials = list(with_everything(Trial.objects.current().filter(experiment=experiment)).order_by("position", "pk"))
    context = {
        "request": request,
        "progress": selectors.progress_of([experiment]),
        "apart": why_apart(experiment, trials),
    }
    answer = answers_of([experiment]).get(experiment.pk)
    return {
        "answer": None if answer is None else answer.to_dict(),
        "experiment": ExperimentDetailSerializer(experiment, context=context).data,
        "predictions": as_data(list(own_predictions(experiment)), request),
        "trials": ResultTrialSerializer(trials, many=True, context=context).data,
    }
