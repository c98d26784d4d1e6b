"""Who a session belongs to."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver

from experiments.models import Preferences


class AccountBackend(ModelBackend):
    """Django's own, which reads a person together with what they prefer: no page needs one query more for that."""

    def get_user(self, user_id: Any) -> Any:
        user = get_user_model()._default_manager.select_related("preferences").filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None


@receiver(user_logged_in, dispatch_uid="rankwire.seen")
def note_seen(sender: Any, *, user: Any, **_: Any) -> None:
    """Who signs in is here: no page of a new person has more to write than others."""
    Preferences.note_seen(user)
