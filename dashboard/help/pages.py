"""Pages of the guides: their list with the search, and each of them."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard.help.guides import MOST_HITS, guides, search
from dashboard.requests.lookup import asked


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """All guides, or the sections that hold the words that were asked for."""
    words = asked(request, "q")
    every = guides().values()
    shown = {
        "place": "help",
        "words": words,
        "hits": search(words),
        "most": MOST_HITS,
        "guides": [guide for guide in every if guide.purpose],
        "others": [guide for guide in every if not guide.purpose],
    }
    return render(request, "help/index.html", shown)


@require_GET
def guide(request: HttpRequest, name: str) -> HttpResponse:
    """One guide with its contents."""
    found = guides().get(name)
    if found is None:
        raise Http404
    contents = [section for section in found.page.sections if section.level in (2, 3)]
    return render(request, "help/guide.html", {"place": "help", "guide": found, "contents": contents})
