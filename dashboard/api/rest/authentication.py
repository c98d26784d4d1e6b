"""Who calls: an API token in ``Authorization: Bearer rw_...``, checked against its stored hash, and what it may."""

from __future__ import annotations

from typing import Any, Final

from auditlog.context import auditlog_value
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from experiments.access import bear
from experiments.models import ApiToken

_SCHEME: Final = "Bearer"


class TokenAuthentication(BaseAuthentication):
    """Authenticate by API token. Without the header the next method (the browser's session) has its turn."""

    def authenticate(self, request: Request) -> tuple[Any, ApiToken] | None:
        scheme, _, key = get_authorization_header(request).partition(b" ")
        if scheme.lower() != _SCHEME.lower().encode():
            return None
        # Latin-1 takes every byte: what is no key is simply not found.
        token = ApiToken.find(key.strip().decode("latin-1"))
        if token is None:
            raise AuthenticationFailed("This token is unknown, is over, was ended, or belongs to an inactive user.")
        if (context := auditlog_value.get(None)) is not None:
            context["actor"] = token.user  # the log of changes looked for a session only
        return bear(token.user, token), token

    def authenticate_header(self, request: Request) -> str:
        """Make the answer to a missing or wrong token 401, not 403."""
        return _SCHEME


class WithinScope(BasePermission):
    """Tokens for reading change nothing, whatever their owner may; what else a scope allows is judged where roles are."""

    message = "This token may only read."

    def has_permission(self, request: Request, view: Any) -> bool:
        reads = isinstance(request.auth, ApiToken) and request.auth.scope == ApiToken.Scope.READ
        return not reads or request.method in SAFE_METHODS


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema describes it."""

    target_class = "dashboard.api.rest.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API token: rw_…"}
