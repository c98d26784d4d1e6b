"""Names that nobody can sign in with for a while, after too many wrong passwords from one address (django-axes).

Axes counts in the cache by name and address, and cannot tell the addresses of a name: they are noted here as it locks them out.
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
from django.core.cache import cache
from django.dispatch import receiver

_MOST_ADDRESSES: Final = 50
"""Of one name: who guesses from everywhere does not fill the cache."""


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
