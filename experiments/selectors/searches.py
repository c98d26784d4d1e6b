"""Results of searches for the best settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analysis.conclusions.context import Searched
from analysis.conclusions.searching import Search
from analysis.search import Result
from experiments.errors import InvalidSpec
from experiments.metrics import find
from experiments.models import FAILED, Experiment, Kind, Measurement, State
from experiments.revision import changed_fields
from experiments.specification import ExperimentSpec, design

_SAME_SEARCH: Final = ("name", "description", "tags", "repetitions", "goal.budget", "goal.matters", "order", "retries")
"""Fields that a user may change without another search."""


@dataclass(frozen=True, slots=True)
class SearchTrial:
    """An ended trial of a search; ``result`` has no value if it failed."""

    pk: int
    version: int
    """Version of the specification that requested it."""
    message: str
    result: Result


def searching_spec(experiment: Experiment) -> ExperimentSpec | None:
    """Return the specification of a search that this installation can read.

    None of other experiments, and of imported searches of an unknown workload, metric or version.
    """
    if not experiment.searches:
        return None
    try:
        spec = experiment.spec
        design.start_of(spec)
        find(spec.optimised, experiment.specification)
    except (InvalidSpec, KeyError, ValueError):
        return None
    return spec


def search_trials(experiment: Experiment, spec: ExperimentSpec) -> list[SearchTrial]:
    """Return the ended trials of a search in their order; two queries."""
    names = list(spec.sweep)
    rows = experiment.trials.current().filter(kind=Kind.SEARCH, state__in=(State.FINISHED, *FAILED))
    finished = rows.filter(state=State.FINISHED)
    counted = Measurement.objects.filter(trial__in=finished, metric=spec.optimised, scope="all", value__gt=0)
    values = dict(counted.values_list("trial_id", "value"))
    columns = rows.order_by("position").values_list("pk", "version", "message", "configuration__parameters")
    return [
        SearchTrial(pk, version, message, Result({name: parameters.get(name) for name in names}, values.get(pk)))
        for pk, version, message, parameters in columns
    ]


def searched_of(experiment: Experiment, spec: ExperimentSpec) -> Searched:
    """Return the results of a search."""
    return Searched(design.start_of(spec), [trial.result for trial in search_trials(experiment, spec)])


def first_version(experiment: Experiment, spec: ExperimentSpec) -> int:
    """Return the number of the first version of a search without an edit of it."""
    first = experiment.version
    for number, stored in experiment.versions.order_by("-number").values_list("number", "specification"):
        if any(not path.startswith(_SAME_SEARCH) for path, *_ in changed_fields(stored, spec.to_dict())):
            break
        first = number
    return first


def search_of(experiment: Experiment, spec: ExperimentSpec, since: int = 1) -> Search:
    """Return the search of an experiment before its next round.

    ``since`` is the first version of the search; results of earlier ones are older than its last edit.
    """
    trials = search_trials(experiment, spec)
    searched = Searched(design.start_of(spec), [trial.result for trial in trials])
    names = set(spec.sweep)
    constants = {name: value for name, value in design.first_point(spec).items() if name not in names}
    matters = spec.goal.matters if spec.goal is not None else 0.0
    is_rate = find(spec.optimised, experiment.specification).direction == "higher"
    earlier = sum(trial.version < since for trial in trials)
    return Search(design.space_of(spec), searched, constants, is_rate, matters, earlier)
