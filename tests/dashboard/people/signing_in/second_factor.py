"""A user and the code of an authenticator app."""

from __future__ import annotations

from typing import Final

from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time

PERSON: Final = {"username": "okafor", "password": "correct horse"}
FACTOR: Final = "/account/second-factor/"


def code_now(secret: str) -> str:
    return str(format_hotp_value(hotp_value(secret, next(iter(yield_hotp_counters_from_time())))))
