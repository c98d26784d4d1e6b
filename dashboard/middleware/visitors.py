"""Access by share links."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from experiments.access import Visitor, with_share_link
from experiments.models import Experiment, ShareLink

VISIT_S: Final = 24 * 3600
"""Sessions of visitors, who can make any number of them."""
OPENED: Final = "shares"
"""Session key: the numbers of opened links."""
_OF_EXPERIMENTS: Final = {
    *("experiment", "experiment-live", "experiment-parts", "experiment-diagnosis", "experiment-yaml"),
    *("trial", "trial-live", "trial-hosts", "trial-packets", "trial-packet", "trial-between", "trial-environment"),
    *("trial-rank-timeline", "trial-output", "artifact"),
}
"""Names of the URLs that the link of an experiment opens for reading."""
_OF_COMPARISONS: Final = {"compare"}
_OF_REPORTS: Final = {"report", "report-html", "report-markdown"}


class VisitorMiddleware:
    """Grants access by share links before sign-in, without indexing by search engines."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        session = request.session
        if session.modified and not session.is_empty() and SESSION_KEY not in session:
            session.set_expiry(VISIT_S)
        if getattr(request, "is_shared", False) or request.path_info.startswith("/shared/"):
            response.headers["X-Robots-Tag"] = "noindex, nofollow"
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> None:
        name = request.resolver_match.view_name if request.resolver_match else ""
        reads = request.method in ("GET", "HEAD") and name in _OF_EXPERIMENTS | _OF_COMPARISONS | _OF_REPORTS
        if not reads or not (opened := request.session.get(OPENED)):
            return
        query = request.GET.urlencode() if name in _OF_COMPARISONS else ""
        if name in _OF_COMPARISONS and not query:
            return
        report = kwargs["pk"] if name in _OF_REPORTS else None
        links = ShareLink.objects.filter(pk__in=opened, query=query, report=report)
        lasting = links.filter(expires_at__gt=timezone.now(), made_by__is_active=True)
        shared = frozenset(Experiment.objects.filter(share_links__in=lasting).values_list("pk", flat=True))
        if not (shared if report is None else lasting.exists()):
            return
        request.is_shared = True  # type: ignore[attr-defined]
        if request.user.is_authenticated:
            with_share_link(request.user, shared, report)
        else:
            request.user = Visitor(shared, report)
