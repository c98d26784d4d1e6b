"""Compression of pages, except those that show a secret."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

_SECRETS: Final = ("/account/", "/invitation/", "/admin/")
"""Pages with a second factor's key, recovery codes or an invitation; others with a secret are ``no-store``."""


class CompressionMiddleware(GZipMiddleware):
    """Compresses HTML for browsers that accept gzip.

    The size of a compressed page could reveal a secret beside text of an attacker (BREACH). Pages that
    show a secret are left as they are; the CSRF token is masked anew in every page, and the length is padded at random.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = response.get("Content-Type", "").startswith("text/html") and not response.streaming
        shows_secret = "no-store" in response.get("Cache-Control", "") or request.path_info.startswith(_SECRETS)
        return super().process_response(request, response) if is_page and not shows_secret else response
