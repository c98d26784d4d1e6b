"""OpenID Connect provider of allauth, with a nonce for each sign-in."""

from __future__ import annotations

import secrets
from typing import Any

from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django.http import HttpRequest, HttpResponse


class IdentityProvider(OpenIDConnectProvider):  # type: ignore[misc]
    """Sends a nonce and stores it in the session; adapters.py compares it with the ID token's."""

    def redirect(self, request: HttpRequest, *args: Any, auth_params: object = None, **kwargs: Any) -> HttpResponse:
        """Redirect with our parameters only: `auth_params` comes from the query of any link."""
        nonce = secrets.token_urlsafe()
        return super().redirect(request, *args, auth_params={"nonce": nonce}, nonce=nonce, **kwargs)
