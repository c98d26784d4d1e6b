"""Deleted experiments that can still be brought back, and bringing them back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_http_methods

from analysis.numbers import amount, plural
from dashboard.labels import workload_title
from dashboard.pages.lists.chosen import Change, Row, Ticked, answer
from experiments import deletion
from experiments.access import may_bring_back, visible_deleted
from experiments.models import Deleted

_SLUG: Final = re.compile(r"[-a-zA-Z0-9_]{1,100}", re.ASCII)


@require_GET
def deleted(request: HttpRequest) -> HttpResponse:
    """What was deleted, by whom, and until when it can be brought back."""
    rows = [{"kept": kept, "about": _about(kept)} for kept in visible_deleted(request.user)]
    return render(request, "lists/deleted.html", {"place": "experiments", "rows": rows})


def _about(kept: Deleted) -> str:
    return f"{workload_title(kept.workload)}, {plural(len(kept.trials), 'trial')}, {amount(kept.bytes, 'B')} of files"


def _against(user: Any, kept: Deleted) -> str:
    return "" if may_bring_back(user, kept) else "belonged to others: its owner and maintainers may bring it back"


def _find(user: Any, tokens: Sequence[str]) -> list[Row]:
    by_slug = {kept.slug: kept for kept in visible_deleted(user)}
    found = [by_slug[token] for token in tokens if token in by_slug]
    return [Row(f"e:{kept.slug}", kept, kept.name, _about(kept), "deleted") for kept in found]


BRING_BACK: Final = Change(
    "Bring back",
    "Bring {count} back",
    "They are as they were: under their addresses, with their trials, and counted again.",
    "{count} brought back.",
    _against,
    lambda kept, _: deletion.bring_back(kept),
    undo="experiments-delete",
)
DELETED: Final = Ticked(
    "experiment", "experiments", "Experiments", "e:", _find, lambda token: _SLUG.fullmatch(token) is not None
)


@require_http_methods(["GET", "HEAD", "POST"])
def undeleted(request: HttpRequest) -> HttpResponse:
    """Bring deleted experiments back."""
    return answer(request, DELETED, BRING_BACK)
