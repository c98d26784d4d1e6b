"""Who signs in is here: listens to sign-ins, so that no page of a new person has more to write than others."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver

from experiments.models import Preferences


@receiver(user_logged_in, dispatch_uid="rankwire.seen")
def note_seen(sender: Any, *, user: Any, **_: Any) -> None:
    Preferences.note_seen(user)
