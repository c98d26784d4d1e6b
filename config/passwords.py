"""How passwords are kept: Argon2, worked out by threads that give way to everything else of the web process."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from django.contrib.auth.hashers import Argon2PasswordHasher

NICENESS: Final = 10
Result = TypeVar("Result")


class YieldingArgon2PasswordHasher(Argon2PasswordHasher):
    """Django's own. One password keeps eight threads busy for a tenth of a second, and many people sign in at nine o'clock:
    ``/healthz`` and the pages of those who are in already go first.
    """

    def encode(self, password: str, salt: str) -> str:
        return _apart(super().encode, password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        return _apart(super().verify, password, encoded)


def _apart(hashed: Callable[[str, str], Result], password: str, other: str) -> Result:
    """The result of a function, or what it raises, in a thread whose own threads have its niceness."""
    with ThreadPoolExecutor(1, initializer=_give_way) as threads:
        return threads.submit(hashed, password, other).result()


def _give_way() -> None:
    os.setpriority(os.PRIO_PROCESS, 0, min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, 19))  # of this thread alone
