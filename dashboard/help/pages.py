"""Pages of the guides: list with search, and single guides."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard.help.guides import MOST_HITS, guides, search
from dashboard.requests.lookup import asked


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """List the guides and the hits of a search."""
    words = asked(request, "q")
    documents = guides().values()
    context = {
        "place": "help",
        "words": words,
        "hits": search(words),
        "most": MOST_HITS,
        "guides": [guide for guide in documents if guide.purpose],
        "others": [guide for guide in documents if not guide.purpose],
    }
    return render(request, "help/index.html", context)


@require_GET
def guide(request: HttpRequest, name: str) -> HttpResponse:
    document = guides().get(name)
    if document is None:
        raise Http404
    contents = [section for section in document.page.sections if section.level in (2, 3)]
    return render(request, "help/guide.html", {"place": "help", "guide": document, "contents": contents})
