"""OpenID Connect provider of allauth, with a nonce for each sign-in."""

from __future__ import annotations

import secrets
from typing import Any, Final

from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse

_PROCESSES: Final = (AuthProcess.LOGIN, AuthProcess.CONNECT, AuthProcess.REDIRECT)


class IdentityProvider(OpenIDConnectProvider):  # type: ignore[misc]
    """Sends a nonce, stored in the session, which adapters.py compares."""

    def redirect(self, request: HttpRequest, process: str, auth_params: object = None, **kwargs: Any) -> HttpResponse:
        """Redirect with our parameters only, not those of the query of a link."""
        if process not in _PROCESSES:  # a session of any visitor stores it
            raise BadRequest("There is no such process of a sign-in.")
        nonce = secrets.token_urlsafe()
        response: HttpResponse = super().redirect(request, process, auth_params={"nonce": nonce}, nonce=nonce, **kwargs)
        return response
