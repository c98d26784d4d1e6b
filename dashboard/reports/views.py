"""Reports to read: their list, one of them, its versions and what they changed, and its files."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.text import slugify
from django.views.decorators.http import require_GET

from dashboard.filters import ReportFilter
from dashboard.reports.parts import Source
from dashboard.reports.rendering import Shown, live_and_frozen, one_file, shown
from experiments.access import may_delete_report, may_write_reports, report_projects, visible_reports
from experiments.models import Report, ReportVersion

PER_PAGE: Final = 25
_CONTEXT: Final = 3


def find_report(request: HttpRequest, pk: int) -> Report:
    """The report of this number, where the reader may see it; 404 otherwise."""
    return get_object_or_404(visible_reports(request.user).select_related("project", "owner"), pk=pk)


@require_GET
def reports(request: HttpRequest) -> HttpResponse:
    """One page of the list; a refresh by htmx gets the table alone."""
    visible = visible_reports(request.user).select_related("project", "owner")
    filters = ReportFilter.of_page(request.GET, visible)
    page = Paginator(filters.matching, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "place": "reports",
        "page": page,
        "filters": filters,
        "may_write": bool(report_projects(request.user)),
    }
    template = "reports/_table.html" if request.htmx else "reports/list.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@require_GET
def report(request: HttpRequest, pk: int) -> HttpResponse:
    found = find_report(request, pk)
    return _page(request, found, found.current)


@require_GET
def version(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """One version, under an address that stays, with what it changed in the one before it."""
    found = find_report(request, pk)
    chosen = get_object_or_404(found.versions.select_related("author"), number=number)
    before = found.versions.filter(number__lt=number).first()
    changes = list(changed_lines(before.text, chosen.text)) if before else []
    return _page(request, found, chosen, before=before, changes=changes)


@require_GET
def markdown(request: HttpRequest, pk: int) -> HttpResponse:
    """The source of the newest version."""
    found = find_report(request, pk)
    text = f"# {found.title}\n\n{found.current.text}"
    return _file(text, found, "md", "text/markdown; charset=utf-8")


@require_GET
def html(request: HttpRequest, pk: int) -> HttpResponse:
    """The newest version as one file that needs no network."""
    found = find_report(request, pk)
    current = found.current
    pieces = shown(current.text, Source(request.user), current.frozen)
    return _file(one_file(found, current, pieces), found, "html", "text/html; charset=utf-8")


def changed_lines(before: str, after: str) -> Iterator[tuple[str, str]]:
    """(sign, line) of a difference with some lines around it: "+", "-", " ", and "…" between places far apart."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=_CONTEXT, lineterm="")
    for number, line in enumerate(islice(lines, 2, None)):  # after its two heads
        if not line.startswith("@@"):
            yield line[0], line[1:]
        elif number:
            yield "…", ""


def _page(
    request: HttpRequest,
    found: Report,
    chosen: ReportVersion,
    *,
    before: ReportVersion | None = None,
    changes: list[tuple[str, str]] | None = None,
) -> HttpResponse:
    pieces = shown(chosen.text, Source(request.user), chosen.frozen)
    may_write = may_write_reports(request.user, found.project)
    context: dict[str, Any] = {
        "place": "reports",
        "report": found,
        "version": chosen,
        "is_current": chosen.number == found.version,
        "pieces": pieces,
        "rests_on": rests_on(pieces),
        "citation": citation(chosen, rests_on(pieces)),
        "counts": live_and_frozen(pieces),
        "versions": found.versions.select_related("author").defer("text", "frozen"),
        "before": before,
        "changes": changes,
        "may_write": may_write,
        "may_delete": may_delete_report(request.user, found),
    }
    return render(request, "reports/page.html", context)


def citation(version: ReportVersion, experiments: list[Any]) -> str:
    """How this version is cited, with what says which results its parts rest on."""
    report = version.report
    by = report.owner.get_username() if report.owner else "Rankwire"
    lines = [f"{by} ({report.created_at:%Y}). {version.title}. Report {report.pk}, version {version.number}."]
    lines += [f"Experiment {each.slug}, specification sha256 {each.specification_hash[:16]}." for each in experiments]
    return "\n".join(lines)


def rests_on(pieces: list[Shown]) -> list[Any]:
    """The experiments of the parts that the reader sees, each once."""
    return list({each.pk: each for piece in pieces if not piece.why for each in piece.experiments}.values())


def _file(text: str, found: Report, ending: str, kind: str) -> HttpResponse:
    response = HttpResponse(text, content_type=kind)
    name = slugify(found.title)[:60] or f"report-{found.pk}"
    response["Content-Disposition"] = f'attachment; filename="{name}.{ending}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
