"""Settings of accounts: mail, OpenID Connect, LDAP, roles of groups."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from config.environment import Environment

ROLES: Final = ("viewer", "submitter", "maintainer")


def mail(url: str, sender: str) -> dict[str, Any]:
    """Return Django's settings of `smtp://user:password@host:port`."""
    if not url:
        return {"EMAIL_BACKEND": "django.core.mail.backends.dummy.EmailBackend"}
    parts = urlsplit(url)
    if parts.scheme not in ("smtp", "smtps", "smtp+tls") or not parts.hostname or not sender:
        raise ImproperlyConfigured(
            "RANKWIRE_SMTP_URL must read smtp://user:password@host:port (or smtps, smtp+tls), with RANKWIRE_MAIL_FROM."
        )
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or {"smtp": 25, "smtps": 465}.get(parts.scheme, 587),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_TIMEOUT": 10,
        "DEFAULT_FROM_EMAIL": sender,
    }


def identity_provider(environment: Environment) -> list[dict[str, Any]]:
    """Return the OpenID Connect provider as apps of allauth, if one is set."""
    server = environment.RANKWIRE_OIDC_SERVER
    client, secret = environment.RANKWIRE_OIDC_CLIENT_ID, environment.RANKWIRE_OIDC_SECRET
    name = environment.RANKWIRE_OIDC_NAME
    scopes = ["openid", "profile", "email", *environment.RANKWIRE_OIDC_SCOPES]
    if not server:
        return []
    parts = urlsplit(server)
    # Its answers are believed because the connection is: without TLS only on this machine.
    is_safe = parts.scheme == "https" or (
        parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    )
    if not is_safe or not client or not secret:
        raise ImproperlyConfigured(
            "RANKWIRE_OIDC_SERVER must be an https URL, with RANKWIRE_OIDC_CLIENT_ID and RANKWIRE_OIDC_SECRET."
        )
    settings = {"server_url": server, "scope": scopes, "oauth_pkce_enabled": True}
    return [{"provider_id": "oidc", "name": name, "client_id": client, "secret": secret, "settings": settings}]


def origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def group_roles(items: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
    """Return group -> (project, role) pairs, from `group=project:role`."""
    roles: dict[str, list[tuple[str, str]]] = {}
    for item in items:
        group, _, target = item.rpartition("=")
        project, _, role = target.partition(":")
        if not group or not project or role not in ROLES:
            raise ImproperlyConfigured(
                f"RANKWIRE_GROUPS must read group=project:role, with one of {', '.join(ROLES)}, not {item!r}."
            )
        roles.setdefault(group.strip(), []).append((project.strip(), role))
    return roles


def directory(environment: Environment) -> dict[str, Any]:
    """Return the settings of django-auth-ldap, if a server is set."""
    server, people = environment.RANKWIRE_LDAP_SERVER, environment.RANKWIRE_LDAP_PEOPLE
    name, password = environment.RANKWIRE_LDAP_BIND, environment.RANKWIRE_LDAP_PASSWORD
    user_filter = environment.RANKWIRE_LDAP_FILTER
    groups = environment.RANKWIRE_LDAP_GROUPS
    if not server:
        return {}
    if not people or "%(user)s" not in user_filter:
        raise ImproperlyConfigured(
            "RANKWIRE_LDAP_SERVER needs RANKWIRE_LDAP_PEOPLE, and %(user)s in RANKWIRE_LDAP_FILTER."
        )
    if importlib.util.find_spec("django_auth_ldap") is None:
        raise ImproperlyConfigured(
            "RANKWIRE_LDAP_SERVER is set, but django-auth-ldap is not installed: "
            "apt-get install libldap2-dev libsasl2-dev gcc, then .venv/bin/uv pip install django-auth-ldap."
        )
    config, ldap = importlib.import_module("django_auth_ldap.config"), importlib.import_module("ldap")
    settings: dict[str, Any] = {
        "AUTH_LDAP_SERVER_URI": server,
        "AUTH_LDAP_BIND_DN": name,
        "AUTH_LDAP_BIND_PASSWORD": password,
        "AUTH_LDAP_START_TLS": server.startswith("ldap:"),
        "AUTH_LDAP_USER_SEARCH": config.LDAPSearch(people, ldap.SCOPE_SUBTREE, user_filter),
        "AUTH_LDAP_USER_ATTR_MAP": {"first_name": "givenName", "last_name": "sn", "email": "mail"},
        # Of connections, and of answers: one that never comes would hold a sign-in for good.
        "AUTH_LDAP_CONNECTION_OPTIONS": dict.fromkeys((ldap.OPT_NETWORK_TIMEOUT, ldap.OPT_TIMEOUT), 10),
    }
    if groups:
        members = config.LDAPSearch(groups, ldap.SCOPE_SUBTREE, "(objectClass=groupOfNames)")
        settings |= {"AUTH_LDAP_GROUP_SEARCH": members, "AUTH_LDAP_GROUP_TYPE": config.GroupOfNamesType()}
    return settings
