"""Output of a trial: a part of a file, its search, and the line of a figure."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard.panels.trial.output import line_of, shown_text, text_files
from dashboard.requests.lookup import find_trial, query_value
from experiments.metrics import find, is_metric

_MOST_DIGITS = 9


@require_GET
def output(request: HttpRequest, pk: int) -> HttpResponse:
    """Render a part of one file, and put its address into the address bar.

    Query: ``file``, ``line``, ``words`` to search for, or ``figure``, whose file and line are shown.
    """
    trial = find_trial(request, pk)
    files = text_files(trial, list(trial.artifacts.all()))
    name, words, figure = (query_value(request, field) for field in ("file", "words", "figure"))
    artifact = next((file for file in files if file.name == name), files[0] if files else None)
    line, notice = _line(query_value(request, "line")), ""
    if figure:
        source = line_of(trial, files, figure)
        if source is not None:
            artifact, line = source
        else:
            label = find(figure).label if is_metric(figure) else figure
            notice = (
                f"No line found for {label}: the output is incomplete, or the current pattern no longer matches it."
            )
    text = shown_text(trial, files, artifact, line=line, words=words) if artifact else None
    response = render(
        request,
        "trial/_output_text.html",
        {"trial": trial, "files": files, "text": text, "words": words, "notice": notice},
    )
    chosen = {"file": artifact.name if artifact and artifact != files[0] else "", "words": words}
    query = urlencode({"tab": "output", **{field: value for field, value in chosen.items() if value}})
    line_shown = f"#L{text.line}" if text and text.line else ""
    response["HX-Replace-Url"] = f"{trial.get_absolute_url()}?{query}{line_shown}"
    return response


def _line(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None
