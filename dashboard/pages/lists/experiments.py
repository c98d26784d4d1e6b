"""The list of experiments, search, changes of ticked experiments, and the trash."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from django.conf import settings
from django.core.paginator import Paginator
from django.db.models import F, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from analysis.numbers import amount, plural
from dashboard.filters import ExperimentFilter
from dashboard.labels import workload_title
from dashboard.pages.lists.chosen import SLUG, ListChange, TickedList, TickedRow, view
from dashboard.pages.lists.views import views_of
from dashboard.panels.experiment.list_rows import chip_state, experiment_rows
from dashboard.requests.columns import Columns, sort_header
from dashboard.requests.lookup import query_value, without
from experiments import deletion
from experiments.access import (
    may_cancel,
    may_remove,
    may_restore,
    may_submit_somewhere,
    read_roles,
    visible_deleted,
    visible_experiments,
    visible_reports,
    visible_trials,
)
from experiments.models import Deleted, Experiment, ReportVersion, SavedView
from experiments.models.experiment import LONGEST_TAG
from experiments.selectors import progress_of

PER_PAGE = 25
NEWEST = "-created_at"
_CHANGES = (("experiments-tag", "Tag"), ("experiments-archive", "Archive"), ("experiments-delete", "Delete"))
_CHANGES_BACK = (("experiments-tag", "Tag"), ("experiments-restore", "Restore"), ("experiments-delete", "Delete"))
COLUMNS: Final = Columns(
    {
        "sweep": "Sweep",
        "elapsed": "Elapsed over sweep",
        "state": "State",
        "trials": "Trials",
        "project": "Project",
        "owner": "Owner",
        "tags": "Tags",
        "date": "Date",
    },
    usual=("sweep", "elapsed", "state", "trials", "date"),
)


@require_GET
def experiments(request: HttpRequest) -> HttpResponse:
    """Show one page of the list; htmx requests get only the table."""
    visible = visible_experiments(request.user, Experiment.objects.select_related("cluster", "owner", "project"))
    filters = ExperimentFilter.of_page(request.GET, visible)
    page = Paginator(filters.matching, PER_PAGE).get_page(request.GET.get("page"))
    sort = query_value(request, "ordering") or NEWEST
    context = {
        "place": "experiments",
        "views": views_of(request, SavedView.Page.EXPERIMENTS),
        "page": page,
        "rows": experiment_rows(list(page.object_list)),
        "has_several_clusters": len({e.cluster_id for e in page.object_list if e.cluster_id}) > 1,
        "filters": filters,
        "heads": {
            "name": sort_header("name", "Experiment", sort),
            "created_at": sort_header("created_at", "Date", sort, first="-"),
        },
        **COLUMNS.of_page(request),
        "query": without(request.GET, "page"),
        "resort": without(request.GET, "page", "ordering"),
        "may_change": may_submit_somewhere(request.user),
        "deleted": len(visible_deleted(request.user)),
        "changes": _CHANGES_BACK if query_value(request, "archived") else _CHANGES,
    }
    template = "experiments/_table.html" if request.htmx else "experiments/page.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@require_GET
def search(request: HttpRequest) -> HttpResponse:
    """Redirect to a trial by number, an experiment by name, or the search of the site."""
    text = query_value(request, "q")
    number = text.lower().removeprefix("trial").strip(" #")
    if number.isdecimal() and len(number) < 18 and visible_trials(request.user).filter(pk=int(number)).exists():
        return redirect("trial", pk=int(number))
    exact = list(visible_experiments(request.user).filter(Q(slug=text) | Q(name__iexact=text))[:2]) if text else []
    if len(exact) == 1:
        return redirect(exact[0])
    return redirect(f"{reverse('help')}?{urlencode({'q': text})}" if text else "help")


_MOST_TAGS: Final = 20
_MOST_QUOTING: Final = 100
"""Newest reports with names of ticked experiments that are read."""
_WORD: Final = re.compile(r"[-\w]+")
MOST_DELETED: Final = 5000
"""Trials of an experiment that a request may delete."""


def _against(user: Any, experiment: Experiment) -> str:
    """Return why ``user`` may not change an experiment; '' for owner and maintainers."""
    if experiment.published:
        return "holds published results, which cannot be changed"
    return "" if may_cancel(user, experiment) else "can be changed only by its owner and maintainers"


def _against_archiving(user: Any, experiment: Experiment) -> str:
    if experiment.archived_at is not None:
        return "is archived already"
    if not experiment.published and experiment.trials.unfinished().exists():
        return "has unfinished trials"
    return _against(user, experiment)


def _against_deleting(user: Any, experiment: Experiment) -> str:
    if not experiment.published and experiment.trials.unfinished().exists():
        return "has unfinished trials: cancel them first"
    if (trials := experiment.trials.count()) > MOST_DELETED:
        return f"has {plural(trials, 'trial')}, too many for this page: use script/manage delete {experiment.slug}"
    return _against(user, experiment)


def _tags(texts: Mapping[str, str]) -> Mapping[str, Any]:
    tags = {name: [tag for text in texts[name].split(",") if (tag := text.strip())] for name in ("add", "remove")}
    if not any(tags.values()):
        raise ValueError("Write a tag to add or to remove.")
    for tag in (*tags["add"], *tags["remove"]):
        if len(tag) > LONGEST_TAG:
            raise ValueError(f"{tag[:LONGEST_TAG]!r}… is too long: a tag has at most {LONGEST_TAG} characters.")
    if len(tags["add"]) > _MOST_TAGS:
        raise ValueError(f"At most {_MOST_TAGS} tags are added at once.")
    if both := set(tags["add"]) & set(tags["remove"]):
        raise ValueError(f"{sorted(both)[0]!r} cannot be added and removed at once.")
    return tags


def _deletion() -> str:
    until = "at any time"
    if settings.DELETED_DAYS:
        until = f"for {plural(settings.DELETED_DAYS, 'day')}; then the files of their trials are deleted too"
    return f"Trials and measurements are deleted too. All can be restored {until}."


ARCHIVE: Final = ListChange(
    "Archive",
    "Archive {count}",
    "They leave the list and Home. Their pages and statistics stay, and they can be restored at any time.",
    "{count} archived.",
    _against_archiving,
    lambda experiment, _: experiment.archive(),
    undo="experiments-restore",
)
RESTORE: Final = ListChange(
    "Restore",
    "Restore {count}",
    "They return to the list and Home.",
    "{count} restored.",
    lambda user, experiment: "is not archived" if experiment.archived_at is None else _against(user, experiment),
    lambda experiment, _: experiment.unarchive(),
    undo="experiments-archive",
)
DELETE: Final = ListChange(
    "Delete",
    "Delete {count}",
    _deletion,
    "{count} deleted.",
    _against_deleting,
    lambda experiment, settled: deletion.delete(experiment, by=settled["author"]),
    undo="experiments-undelete",
)
TAG: Final = ListChange(
    "Tag",
    "Tag {count}",
    "Each gets a new revision with these tags; no trial is queued.",
    "{count} tagged.",
    lambda user, experiment: "was imported" if experiment.is_imported else _against(user, experiment),
    lambda experiment, settled: experiment.retag(settled["add"], settled["remove"], author=settled["author"]),
    read_fields=_tags,
    fields="lists/_tags.html",
)


def _find(user: Any, tokens: Sequence[str]) -> list[TickedRow]:
    experiments = visible_experiments(user, Experiment.objects.select_related("project")).filter(slug__in=tokens)
    by_slug = {experiment.slug: experiment for experiment in experiments}
    rows = [by_slug[token] for token in tokens if token in by_slug]
    read_roles(user, (row.project for row in rows))
    progress = progress_of(rows)
    return [
        TickedRow(
            f"e:{experiment.slug}",
            experiment,
            experiment.name,
            ", ".join(
                [
                    workload_title(experiment.workload),
                    *experiment.tags,
                    plural(progress[experiment.pk].total, "trial"),
                ]
            ),
            "published" if experiment.published else chip_state(progress[experiment.pk]),
        )
        for experiment in rows
    ]


def _find_with_reports(user: Any, tokens: Sequence[str]) -> list[TickedRow]:
    rows = _find(user, tokens)
    quoted = _quoted(user, [row.thing.slug for row in rows])
    return [replace(row, about=", ".join([row.about, *quoted[row.thing.slug]])) for row in rows]


def _quoted(user: Any, slugs: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the visible reports that contain parts of the experiments.

    The newest three each, by one search of all texts, which may have gigabytes.
    """
    quoted: dict[str, list[str]] = {slug: [] for slug in slugs}
    if not slugs:
        return quoted
    newest = ReportVersion.objects.filter(report__in=visible_reports(user), number=F("report__version"))
    naming = newest.filter(text__regex=rf"(^|[^-\w])({'|'.join(map(re.escape, slugs))})($|[^-\w])")
    texts = naming.order_by("-report__changed_at", "-report").values_list("title", "text")[:_MOST_QUOTING]
    for title, text in texts:
        for slug in quoted.keys() & set(_WORD.findall(text)):
            quoted[slug].append(f"quoted in the report {title!r}, which hides its parts meanwhile")
    more = ["possibly quoted in older reports"] if len(texts) == _MOST_QUOTING else []
    return {slug: [*sentences[:3], *more] for slug, sentences in quoted.items()}


TICKED_EXPERIMENTS: Final = TickedList("experiment", "experiments", "Experiments", "e:", _find, SLUG)


archived = view(TICKED_EXPERIMENTS, ARCHIVE)
restored = view(TICKED_EXPERIMENTS, RESTORE)
tagged = view(TICKED_EXPERIMENTS, TAG)
deleted = view(replace(TICKED_EXPERIMENTS, find=_find_with_reports), DELETE)


@require_GET
def trash(request: HttpRequest) -> HttpResponse:
    """Show the deleted experiments that can be restored."""
    rows = [
        {"kept": row, "about": _about(row), "may_remove": may_remove(request.user, row, role)}
        for row, role in visible_deleted(request.user).items()
    ]
    return render(request, "lists/deleted.html", {"place": "experiments", "rows": rows})


def _about(row: Deleted) -> str:
    return f"{workload_title(row.workload)}, {plural(len(row.trials), 'trial')} with all attempts, {amount(row.bytes, 'B')} of files"


def _find_deleted(user: Any, tokens: Sequence[str]) -> list[TickedRow]:
    by_slug = {row.slug: row for row in visible_deleted(user)}
    rows = [by_slug[token] for token in tokens if token in by_slug]
    return [TickedRow(f"e:{row.slug}", row, row.name, _about(row), "deleted") for row in rows]


BRING_BACK: Final = ListChange(
    "Restore",
    "Restore {count}",
    "They return unchanged with their pages, trials and statistics.",
    "{count} restored.",
    lambda user, row: "" if may_restore(user, row) else "can be restored only by its owner and maintainers",
    lambda experiments, _: deletion.restore_deleted(experiments),
    undo="experiments-delete",
)
REMOVE: Final = ListChange(
    "Delete now",
    "Delete {count} now",
    "This deletes them for good, with the files of their trials. It cannot be undone.",
    "{count} deleted for good.",
    lambda user, row: _against_removing(user, row),
    lambda deleted, _: deletion.remove(deleted.pk),
)
DELETED: Final = TickedList("experiment", "experiments", "Experiments", "e:", _find_deleted, SLUG)


def _against_removing(user: Any, row: Deleted) -> str:
    if len(row.trials) > MOST_DELETED:
        return f"has {plural(len(row.trials), 'trial')}, too many for this page"
    return "" if may_remove(user, row) else "can be deleted now only by maintainers"


undeleted = view(DELETED, BRING_BACK)
removed = view(DELETED, REMOVE)
