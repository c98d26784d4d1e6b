"""Authentication backend, roles of groups, and lockouts.

Axes counts wrong passwords in the cache by name and address and cannot list the addresses of a name; they are recorded here.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from typing import Any, Final

from allauth.account.internal.flows.login import get_authentication_records
from allauth.socialaccount.signals import social_account_removed
from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_client_cache_keys
from axes.models import AccessAttempt
from axes.signals import user_locked_out
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.signals import user_logged_in
from django.core.cache import cache
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest

from experiments.models import Membership, Preferences, Project

_MOST_ADDRESSES: Final = 50
"""Recorded addresses of one name, to bound the cache."""
_IGNORED: Final = re.compile("[\u034f\u1806\u180b-\u180d\ufe00-\ufe0f\ufffc]")


def plain_name(name: str) -> str:
    """Return a name without what a directory ignores in comparisons (RFC 4518)."""
    text = unicodedata.normalize("NFKC", _IGNORED.sub("", name))
    return " ".join("".join(letter for letter in text if unicodedata.category(letter) not in ("Cc", "Cf")).split())


def counted_name(request: HttpRequest, credentials: Mapping[str, Any] | None) -> str:
    """Return the name whose wrong passwords axes counts: one for all of its forms."""
    name = credentials.get("username") if credentials else request.POST.get("username")
    return folded(str(name or ""))


def counted_address(request: HttpRequest) -> str:
    """Return the address that axes counts by: of IPv6 the network of a site."""
    address = str(request.META.get("REMOTE_ADDR") or "")
    return str(ip_network(f"{address}/64", strict=False)) if ":" in address else address


class AccountBackend(ModelBackend):
    """Django's backend that loads users with their preferences, in one query."""

    def get_user(self, user_id: Any) -> Any:
        user = get_user_model()._default_manager.select_related("preferences").filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None


@receiver(user_logged_in, dispatch_uid="rankwire.signed_in")
def note_sign_in(sender: Any, *, request: HttpRequest, user: Any, **_: Any) -> None:
    """Record the visit; end roles of groups that nothing confirms.

    A user who left the provider or directory may still have a password of Rankwire, or a passkey.
    """
    Preferences.note_seen(user)
    request.session.set_expiry(None)  # until now that of a visitor
    methods = [record["method"] for record in get_authentication_records(request, user)]
    confirming = ["socialaccount"] if user.has_usable_password() else ["socialaccount", "password"]
    if not {*[method for method in methods if method != "mfa"][-1:]} & {*confirming}:
        give_roles(user, [])


@receiver(social_account_removed, dispatch_uid="rankwire.disconnected")
def end_group_roles(sender: Any, *, socialaccount: Any, **_: Any) -> None:
    """End the roles of the provider's groups: no sign-in updates them now."""
    give_roles(socialaccount.user, [])


def give_roles(user: Any, groups: Iterable[str]) -> None:
    """Give ``user`` the roles of the groups; remove roles that came with other groups.

    Roles given by a maintainer stay. Groups of missing projects are ignored.
    """
    ranks = Membership.Role.values
    role_of: dict[str, str] = {}
    for group in groups:
        for slug, role in settings.GROUP_ROLES.get(group, ()):
            role_of[slug] = max(role, role_of.get(slug, ranks[0]), key=ranks.index)
    with transaction.atomic():
        user.memberships.filter(by_group=True).exclude(project__slug__in=role_of).delete()
        for project in Project.objects.filter(slug__in=role_of):
            role = role_of[project.slug]
            member, is_new = user.memberships.get_or_create(project=project, defaults={"role": role, "by_group": True})
            if not is_new and member.by_group and member.role != role:
                member.role = role
                member.save(update_fields=["role"])


@receiver(user_locked_out, dispatch_uid="rankwire.lockouts")
def note_lockout(sender: Any, *, username: str | None, ip_address: str, **_: Any) -> None:
    """Record the address for the duration of the lock."""
    if username:
        addresses = [address for address in cache.get(_key(username), []) if address != ip_address]
        cache.set(
            _key(username), [*addresses, ip_address][-_MOST_ADDRESSES:], settings.AXES_COOLOFF_TIME.total_seconds()
        )


def locked(names: Iterable[str]) -> dict[str, list[str]]:
    """Return locked names of ``names`` -> addresses."""
    by_key = {_key(name): name for name in names}
    recorded = {by_key[key]: addresses for key, addresses in cache.get_many(by_key).items()}
    still = {
        name: [address for address in addresses if _is_locked(name, address)] for name, addresses in recorded.items()
    }
    return {name: addresses for name, addresses in still.items() if addresses}


def unlock(name: str) -> int:
    """Unlock ``name`` for all addresses; return how many were locked."""
    addresses = locked([name]).get(name, [])
    for address in addresses:
        AxesProxyHandler.reset_attempts(ip_address=address, username=folded(name))
    cache.delete(_key(name))
    return len(addresses)


def _is_locked(name: str, address: str) -> bool:
    keys = get_client_cache_keys(AccessAttempt(username=folded(name), ip_address=address))
    return any(count >= settings.AXES_FAILURE_LIMIT for count in cache.get_many(keys).values())


def _key(name: str) -> str:
    return f"locked-out:{hashlib.sha256(folded(name).encode()).hexdigest()}"


def folded(name: str) -> str:
    """Return one form of all names that a directory takes for the same."""
    return plain_name(name).casefold()
