"""What is done with experiments that were ticked in their list: archived and brought back, given tags."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from dashboard.experiment.list_rows import chip_state
from dashboard.labels import workload_title
from dashboard.pages.lists.chosen import Change, Row, Ticked, answer
from experiments.access import may_cancel, visible_experiments
from experiments.models import Experiment
from experiments.models.keeping import LONGEST_TAG, archive, restore, retag
from experiments.selectors import progress_of

_SLUG: Final = re.compile(r"[-a-zA-Z0-9_]{1,100}", re.ASCII)
_MOST_TAGS: Final = 20


def _against(user: Any, experiment: Experiment) -> str:
    """Archiving and tagging are for who may cancel its trials: the owner and maintainers."""
    if experiment.published:
        return "holds published results, which stay as they are"
    return "" if may_cancel(user, experiment) else "belongs to others: its owner and maintainers may"


def _against_archiving(user: Any, experiment: Experiment) -> str:
    if experiment.archived_at is not None:
        return "is archived already"
    if not experiment.published and experiment.trials.unfinished().exists():
        return "has trials that wait or run"
    return _against(user, experiment)


def _against_restoring(user: Any, experiment: Experiment) -> str:
    return _against(user, experiment) if experiment.archived_at is not None else "is not archived"


def _against_tagging(user: Any, experiment: Experiment) -> str:
    return "was measured elsewhere and imported" if experiment.is_imported else _against(user, experiment)


def _archived(experiment: Experiment, _: Mapping[str, Any]) -> None:
    archive(experiment)


def _restored(experiment: Experiment, _: Mapping[str, Any]) -> None:
    restore(experiment)


def _tags(given: Mapping[str, str]) -> Mapping[str, Any]:
    """Read the tags to add and to remove. Raise ValueError."""
    tags = {name: [tag for text in given[name].split(",") if (tag := text.strip())] for name in ("add", "remove")}
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


ARCHIVE: Final = Change(
    "Archive",
    "Archive {count}",
    "They leave the list and Home. They stay under their addresses, their trials go on counting, and they can be brought back at any time.",
    "{count} archived.",
    _against_archiving,
    _archived,
    undo="experiments-restore",
)
RESTORE: Final = Change(
    "Bring back",
    "Bring {count} back",
    "They stand in the list and on Home again.",
    "{count} brought back.",
    _against_restoring,
    _restored,
    undo="experiments-archive",
)
TAG: Final = Change(
    "Tag",
    "Tag {count}",
    "Each gets a new version with other tags; nothing else changes and no trial is queued.",
    "{count} tagged.",
    _against_tagging,
    lambda experiment, settled: retag(experiment, settled["add"], settled["remove"], author=settled["author"]),
    settle=_tags,
    fields="lists/_tags.html",
)


def _find(user: Any, tokens: Sequence[str]) -> list[Row]:
    experiments = visible_experiments(user, Experiment.objects.select_related("project")).filter(slug__in=tokens)
    by_slug = {experiment.slug: experiment for experiment in experiments}
    found = [by_slug[token] for token in tokens if token in by_slug]
    progress = progress_of(found)
    return [
        Row(
            f"e:{each.slug}",
            each,
            each.name,
            ", ".join([workload_title(each.workload), *each.tags]),
            "published" if each.published else chip_state(progress[each.pk]),
        )
        for each in found
    ]


EXPERIMENTS: Final = Ticked(
    "experiment", "experiments", "Experiments", "e:", _find, lambda token: _SLUG.fullmatch(token) is not None
)


@require_http_methods(["GET", "HEAD", "POST"])
def archived(request: HttpRequest) -> HttpResponse:
    """Take the ticked experiments out of the lists."""
    return answer(request, EXPERIMENTS, ARCHIVE)


@require_http_methods(["GET", "HEAD", "POST"])
def restored(request: HttpRequest) -> HttpResponse:
    """Bring the ticked experiments back into the lists."""
    return answer(request, EXPERIMENTS, RESTORE)


@require_http_methods(["GET", "HEAD", "POST"])
def tagged(request: HttpRequest) -> HttpResponse:
    """Give the ticked experiments tags, and take some away."""
    return answer(request, EXPERIMENTS, TAG)
