"""Pages to read reports: list, versions, differences, files."""

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

from analysis import numbers
from dashboard.filters import ReportFilter
from dashboard.reports.parts import Source
from dashboard.reports.rendering import Piece, live_and_frozen, one_file, pieces_of
from experiments.access import may_delete_report, may_write_reports, report_projects, visible_reports
from experiments.models import Report, ReportVersion

PER_PAGE: Final = 25
_CONTEXT: Final = 3
_MOST_COMPARED: Final = 1000
"""Lines of a text."""


def find_report(request: HttpRequest, pk: int) -> Report:
    """Return a visible report. Raise Http404."""
    return get_object_or_404(visible_reports(request.user).select_related("project", "owner"), pk=pk)


@require_GET
def reports(request: HttpRequest) -> HttpResponse:
    """List reports; for htmx the table only."""
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
    document = find_report(request, pk)
    return _page(request, document, document.current)


@require_GET
def version(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Show a version with its difference from the previous one."""
    document = find_report(request, pk)
    chosen = get_object_or_404(document.versions.select_related("author"), number=number)
    before = document.versions.filter(number__lt=number).first()
    changes = list(changed_lines(before.text, chosen.text)) if before else []
    return _page(request, document, chosen, before=before, changes=changes)


@require_GET
def markdown(request: HttpRequest, pk: int) -> HttpResponse:
    document = find_report(request, pk)
    text = f"# {document.title}\n\n{document.current.text}"
    return _file(text, document, "md", "text/markdown; charset=utf-8")


@require_GET
def html(request: HttpRequest, pk: int) -> HttpResponse:
    """Download the newest version as one HTML file."""
    document = find_report(request, pk)
    current = document.current
    pieces = pieces_of(current.text, Source(request.user), current.frozen)
    return _file(one_file(document, current, pieces), document, "html", "text/html; charset=utf-8")


def changed_lines(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield (sign, line) of a difference: "+", "-", " ", and "…" between hunks.

    Only of texts that are compared within a second: the time grows with the square of the lines.
    """
    texts = before.splitlines(), after.splitlines()
    if max(map(len, texts)) > _MOST_COMPARED:
        yield " ", f"A version has more than {numbers.grouped(_MOST_COMPARED)} lines: no comparison is shown."
        return
    lines = difflib.unified_diff(*texts, n=_CONTEXT, lineterm="")
    for number, line in enumerate(islice(lines, 2, None)):  # without the two header lines
        if not line.startswith("@@"):
            yield line[0], line[1:]
        elif number:
            yield "…", ""


def _page(
    request: HttpRequest,
    document: Report,
    chosen: ReportVersion,
    *,
    before: ReportVersion | None = None,
    changes: list[tuple[str, str]] | None = None,
) -> HttpResponse:
    pieces = pieces_of(chosen.text, Source(request.user), chosen.frozen)
    may_write = may_write_reports(request.user, document.project)
    context: dict[str, Any] = {
        "place": "reports",
        "report": document,
        "version": chosen,
        "is_current": chosen.number == document.version,
        "pieces": pieces,
        "rests_on": rests_on(pieces),
        "citation": citation(chosen, rests_on(pieces)),
        "counts": live_and_frozen(pieces),
        "versions": document.versions.select_related("author").defer("text", "frozen"),
        "before": before,
        "changes": changes,
        "may_write": may_write,
        "may_delete": may_delete_report(request.user, document),
    }
    return render(request, "reports/page.html", context)


def citation(version: ReportVersion, experiments: list[Any]) -> str:
    """Return a citation of a version and of the experiments that it uses."""
    report = version.report
    by = report.owner.get_username() if report.owner else "Rankwire"
    lines = [f"{by} ({report.created_at:%Y}). {version.title}. Report {report.pk}, version {version.number}."]
    lines += [
        f"Experiment {experiment.slug}, specification sha256 {experiment.specification_hash[:16]}."
        for experiment in experiments
    ]
    return "\n".join(lines)


def rests_on(pieces: list[Piece]) -> list[Any]:
    """Return the distinct experiments of the visible parts."""
    return list(
        {experiment.pk: experiment for piece in pieces if not piece.why for experiment in piece.experiments}.values()
    )


def _file(text: str, document: Report, ending: str, kind: str) -> HttpResponse:
    response = HttpResponse(text, content_type=kind)
    name = slugify(document.title)[:60] or f"report-{document.pk}"
    response["Content-Disposition"] = f'attachment; filename="{name}.{ending}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
