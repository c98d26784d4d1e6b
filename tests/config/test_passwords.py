"""Passwords are Argon2 as Django writes it; working one out gives way to everything else of the process."""

from __future__ import annotations

import os

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher, check_password, make_password
from django.test import override_settings
from django.utils.module_loading import import_string

from config import settings as shipped
from config.passwords import NICENESS


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


def test_a_password_is_kept_as_argon2_which_django_itself_reads() -> None:
    with override_settings(PASSWORD_HASHERS=shipped.PASSWORD_HASHERS):
        kept = make_password("correct horse")
        assert kept.startswith("argon2$argon2id$")
        assert [check_password(each, kept) for each in ("correct horse", "wrong horse")] == [True, False]
    assert Argon2PasswordHasher().verify("correct horse", kept)


@pytest.mark.parametrize("work", ["encode", "verify"])
def test_it_is_worked_out_by_a_thread_that_gives_way_and_its_caller_stays_as_it_was(
    monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    monkeypatch.setattr(Argon2PasswordHasher, work, lambda *_: niceness())
    own = niceness()
    assert getattr(import_string(shipped.PASSWORD_HASHERS[0])(), work)("correct horse", "salt") == min(
        own + NICENESS, 19
    )
    assert niceness() == own
