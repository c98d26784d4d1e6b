"""Pages of the guides: list with search, and single guides."""

from __future__ import annotations

from typing import Final

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET

from dashboard.help.guides import INDEX, MOST_HITS, guides, search, similar_words, with_address
from dashboard.help.site_search import search_site
from dashboard.help.version import version
from dashboard.requests.lookup import query_value

_FORMER: Final = ("user-guide", "administrator")
"""Names of documents that are divided now."""


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """List the guides; of a search, names that the user may read, then sections."""
    words = query_value(request, "q")
    decisions = [guide for name, guide in sorted(guides().items()) if name[:4].isdecimal()]
    hits = search(words)
    context = {
        "place": "help",
        "words": words,
        "hits": hits,
        "similar_words": similar_words(words) if words and not hits else (),
        "groups": search_site(request.user, words),
        "most": MOST_HITS,
        "index": guides()[INDEX],
        "decisions": decisions,
        "version": version(),
    }
    return render(request, "help/index.html", context)


@require_GET
def guide(request: HttpRequest, name: str) -> HttpResponse:
    if name in (INDEX, *_FORMER):
        return redirect("help")
    document = guides().get(name)
    if document is None:
        raise Http404
    contents = [section for section in document.page.sections if section.level in (2, 3)]
    text = with_address(document.page, request.build_absolute_uri(reverse("home")).rstrip("/"))
    return render(request, "help/guide.html", {"place": "help", "guide": document, "text": text, "contents": contents})
