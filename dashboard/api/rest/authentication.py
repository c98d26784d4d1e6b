"""Authentication by API token (``Authorization: Bearer rw_...``) and its scope."""

from __future__ import annotations

from typing import Any, Final

from auditlog.context import auditlog_value
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from experiments.access import with_token
from experiments.models import ApiToken

_SCHEME: Final = "Bearer"


class TokenAuthentication(BaseAuthentication):
    """Authentication by API token, before the browser session."""

    def authenticate(self, request: Request) -> tuple[Any, ApiToken] | None:
        scheme, _, key = get_authorization_header(request).partition(b" ")
        if scheme.lower() != _SCHEME.lower().encode():
            return None
        # Latin-1 decodes every byte: an invalid key is not found.
        token = ApiToken.find(key.strip().decode("latin-1"))
        if token is None:
            raise AuthenticationFailed("This token is unknown, expired or revoked, or belongs to an inactive user.")
        if (context := auditlog_value.get(None)) is not None:
            context["actor"] = token.user  # the change log reads sessions only
        return with_token(token.user, token), token

    def authenticate_header(self, request: Request) -> str:
        """Answer 401, not 403, to a missing or wrong token."""
        return _SCHEME


class WithinScope(BasePermission):
    """Read-only tokens change nothing; other scopes are checked with roles."""

    message = "This token is read-only."

    def has_permission(self, request: Request, view: Any) -> bool:
        reads = isinstance(request.auth, ApiToken) and request.auth.scope == ApiToken.Scope.READ
        return not reads or request.method in SAFE_METHODS


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Description of the token for the OpenAPI document."""

    target_class = "dashboard.api.rest.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API token: rw_…"}
