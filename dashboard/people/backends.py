"""Who a session belongs to, the roles that come with groups, and names that are locked out.

Groups are those of an identity provider or a directory (the setting ``RANKWIRE_GROUPS``). Axes counts wrong passwords in the cache by name
and address, and cannot tell the addresses of a name: they are noted here as it locks them out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

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

from experiments.models import Membership, Preferences, Project

_MOST_ADDRESSES: Final = 50
"""Of one name: who guesses from everywhere does not fill the cache."""


class AccountBackend(ModelBackend):
    """Django's own, which reads a person together with what they prefer: no page needs one query more for that."""

    def get_user(self, user_id: Any) -> Any:
        user = get_user_model()._default_manager.select_related("preferences").filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None


@receiver(user_logged_in, dispatch_uid="rankwire.signed_in")
def note_sign_in(sender: Any, *, user: Any, **_: Any) -> None:
    """Who signs in is here: no page of a new person has more to write than others. Their groups in the directory give roles."""
    Preferences.note_seen(user)
    entry = getattr(user, "ldap_user", None)  # as django-auth-ldap leaves it
    if entry is not None and hasattr(settings, "AUTH_LDAP_GROUP_SEARCH"):
        give_roles(user, entry.group_names)


def give_roles(user: Any, groups: Iterable[str]) -> None:
    """Give ``user`` the roles of these groups, and take those away that a group gave before and gives no more.

    What somebody gave by hand stays as it is. A project that does not exist gives nothing.
    """
    ranks = Membership.Role.values
    wanted: dict[str, str] = {}
    for group in groups:
        for slug, role in settings.GROUP_ROLES.get(group, ()):
            wanted[slug] = max(role, wanted.get(slug, ranks[0]), key=ranks.index)
    with transaction.atomic():
        user.memberships.filter(by_group=True).exclude(project__slug__in=wanted).delete()
        for project in Project.objects.filter(slug__in=wanted):
            role = wanted[project.slug]
            member, is_new = user.memberships.get_or_create(project=project, defaults={"role": role, "by_group": True})
            if not is_new and member.by_group and member.role != role:
                member.role = role
                member.save(update_fields=["role"])


@receiver(user_locked_out, dispatch_uid="rankwire.lockouts")
def note_lockout(sender: Any, *, username: str | None, ip_address: str, **_: Any) -> None:
    """Keep the address for as long as the lock lasts."""
    if username:
        kept = [each for each in cache.get(_key(username), []) if each != ip_address]
        cache.set(_key(username), [*kept, ip_address][-_MOST_ADDRESSES:], settings.AXES_COOLOFF_TIME.total_seconds())


def locked(names: Iterable[str]) -> dict[str, list[str]]:
    """Return those of ``names`` that are locked out, each with the addresses from where."""
    by_key = {_key(name): name for name in names}
    found = {by_key[key]: addresses for key, addresses in cache.get_many(by_key).items()}
    still = {name: [each for each in found[name] if _is_locked(name, each)] for name in found}
    return {name: addresses for name, addresses in still.items() if addresses}


def unlock(name: str) -> int:
    """Let ``name`` try again from everywhere; return from how many addresses it could not."""
    addresses = locked([name]).get(name, [])
    for address in addresses:
        AxesProxyHandler.reset_attempts(ip_address=address, username=name)
    cache.delete(_key(name))
    return len(addresses)


def _is_locked(name: str, address: str) -> bool:
    keys = get_client_cache_keys(AccessAttempt(username=name, ip_address=address))
    return any(count >= settings.AXES_FAILURE_LIMIT for count in cache.get_many(keys).values())


def _key(name: str) -> str:
    return f"locked-out:{hashlib.sha256(name.encode()).hexdigest()}"
