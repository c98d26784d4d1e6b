"""OpenID Connect provider of allauth, with a nonce for each sign-in."""

from __future__ import annotations

import secrets
from typing import Any

from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django.http import HttpRequest, HttpResponse


class IdentityProvider(OpenIDConnectProvider):  # type: ignore[misc]
    """Sends a nonce, stored in the session, which adapters.py compares."""

    def redirect(self, request: HttpRequest, *args: Any, auth_params: object = None, **kwargs: Any) -> HttpResponse:
        """Redirect with our parameters only, not those of the query of a link."""
        nonce = secrets.token_urlsafe()
        response: HttpResponse = super().redirect(request, *args, auth_params={"nonce": nonce}, nonce=nonce, **kwargs)
        return response
