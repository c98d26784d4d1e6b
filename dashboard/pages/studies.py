"""Studies: published results, results measured here, and built-in experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import and_, or_
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, JSONField, OuterRef, Q
from django.db.models.functions import Cast
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from analysis.conclusions import Answer
from analysis.numbers import plural
from dashboard.labels import sentence_and_rest
from dashboard.panels.experiment.list_rows import chip_state, chip_words
from dashboard.requests.idempotency import redirect_or_refuse
from dashboard.states import STRENGTH
from experiments import workloads
from experiments.access import projects_for, visible_experiments
from experiments.library import built_in
from experiments.models import Experiment, State, Trial
from experiments.selectors import progress_of
from experiments.selectors.diagnosis import answers_of
from experiments.specification import ExperimentSpec, parse_yaml
from experiments.specification.design import expand
from workers import queue

_DESIGN: Final = ("parameters", "sweep", "zip", "where", "scaling", "grows_with_hosts", "link")
"""Fields that make an experiment one of the study: repetitions, cluster and capture may differ."""
_NETWORK: Final = "-network-"
"""Part of the names of network studies."""
STUDIES: Final = (
    "guster-2007-water",
    "pinning-2007-wan",
    "monarc-1999-readers",
    "eadline-2006-hpl",
    "york-staging",
)
"""The order of the page; other studies follow by number."""


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A built-in experiment: its file's stem and its specification."""

    stem: str
    spec: ExperimentSpec
    trials: int

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that it needs and this machine lacks."""
        return workloads.missing_packages(workloads.get(self.spec.workload))

    def called(self, beginnings: tuple[str, ...]) -> str:
        """Return its name within its study: 'quick', 'full', 'jitter'."""
        begun = next((b for b in beginnings if self.stem.startswith(f"{b}-")), None)
        return self.stem if begun is None else self.stem.removeprefix(f"{begun}-")


@lru_cache(maxsize=1)  # the files come with the program
def built_in_experiments() -> tuple[BuiltIn, ...]:
    """Return the built-in experiments: quick, full, others; network studies last."""
    specs = {file.stem: parse_yaml(file.read_text()) for file in built_in()}
    experiments = [BuiltIn(stem, spec, len(expand(spec).trials)) for stem, spec in specs.items()]
    return tuple(
        sorted(
            experiments,
            key=lambda e: (not e.stem.endswith("-quick"), not e.stem.endswith("-full"), _NETWORK in e.stem, e.stem),
        )
    )


@require_GET
def studies(request: HttpRequest) -> HttpResponse:
    """Show every published study with the user's latest experiment of its design."""
    order = {slug: number for number, slug in enumerate(STUDIES)}
    published = list(visible_experiments(request.user).filter(published=True).order_by("pk"))
    published.sort(key=lambda study: order.get(study.slug, len(STUDIES)))
    latest = {
        study.pk: experiment for study in published if (experiment := _latest_own(request.user, study)) is not None
    }
    progress = progress_of(latest.values())
    answers = answers_of([*published, *latest.values()])
    cards = [_card(study, latest.get(study.pk), progress, answers) for study in published]
    return render(request, "studies/page.html", {"place": "studies", "cards": cards})


@require_POST
def run(request: HttpRequest, stem: str) -> HttpResponse:
    """Start a built-in experiment and redirect to it."""
    chosen = next((option for option in built_in_experiments() if option.stem == stem), None)
    if chosen is None:
        raise Http404(f"no built-in experiment {stem}")
    project = next(iter(projects_for(request.user, chosen.spec.to_dict())), None)
    if project is None:
        raise PermissionDenied

    def started() -> HttpResponseRedirect:
        experiment = queue.submit(chosen.spec, project=project, owner=request.user)
        messages.success(request, f"Queued {plural(experiment.trials.count(), 'trial')}.", extra_tags="ok queued")
        return redirect(experiment)

    return redirect_or_refuse(request, started, "studies", lambda error: f"{chosen.spec.name} cannot run: {error}")


def _experiments_of(study: Experiment) -> list[BuiltIn]:
    beginnings = tuple(study.specification.get("built_in", ()))
    return [experiment for experiment in built_in_experiments() if experiment.stem.startswith(beginnings)]


def _latest_own(user: Any, study: Experiment) -> Experiment | None:
    """Return the latest experiment of the study's designs, preferably with results."""
    designs = [_has_design_of(experiment.spec) for experiment in _experiments_of(study)]
    if not designs:
        return None
    measured = Exists(Trial.objects.filter(experiment=OuterRef("pk"), state=State.FINISHED))
    experiments = visible_experiments(user).filter(published=False, workload=study.workload)
    # The column keeps the order of its keys, as type json; only jsonb can be compared.
    experiments = experiments.annotate(design=Cast("specification", JSONField())).filter(reduce(or_, designs))
    return experiments.annotate(measured=measured).order_by("-measured", "-pk").first()


def _has_design_of(spec: ExperimentSpec) -> Q:
    stored = spec.to_dict()
    return reduce(
        and_,
        (Q(**{f"design__{name}": stored[name]}) if name in stored else ~Q(design__has_key=name) for name in _DESIGN),
    )


def _card(study: Experiment, latest: Experiment | None, progress: Any, answers: Mapping[int, Answer]) -> dict[str, Any]:
    beginnings, experiments = tuple(study.specification.get("built_in", ())), _experiments_of(study)
    by_name: dict[str, BuiltIn] = {}
    for experiment in experiments:
        short = experiment.called(beginnings)
        by_name[experiment.stem if short in by_name else short] = experiment
    sizes = [(experiment, name) for name, experiment in by_name.items()]
    return {
        "study": study,
        "title": study.name.partition(", as published")[0],
        "published": _result(answers.get(study.pk)) or next(iter((study.source or {}).get("statements", [])), ""),
        "own": latest,
        "state": chip_state(progress[latest.pk]) if latest else "",
        "state_words": chip_words(progress[latest.pk]) if latest else "",
        "measured": _result(answers.get(latest.pk)) if latest else "",
        "strength": STRENGTH[answers[latest.pk].strength] if latest and latest.pk in answers else None,
        "progress": progress[latest.pk] if latest else None,
        "runs": sizes,
    }


def _result(answer: Answer | None) -> str:
    return sentence_and_rest(answer.sentence)[0] if answer is not None else ""
