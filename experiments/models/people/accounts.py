"""Changes of accounts by superusers. One active superuser always remains."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import transaction

from experiments.errors import LastSuperuser
from experiments.models.changes import note

CLUSTER_RIGHTS: Final = ("add_cluster", "change_cluster")
"""Permissions of users who set up clusters; staff status makes them valid."""


def close_account(user: Any) -> None:
    """Close an account: its sessions and tokens are invalid, its experiments stay."""
    _set(user, is_active=False)


def reopen_account(user: Any) -> None:
    """Reopen an account with its tokens and roles."""
    _set(user, is_active=True)


def make_superuser(user: Any) -> None:
    """Give superuser rights, with access to the administration."""
    _set(user, is_superuser=True, is_staff=True)


def end_superuser(user: Any) -> None:
    """Take superuser rights away; roles in projects stay."""
    _set(user, is_superuser=False, is_staff=False)


def permit_clusters(user: Any) -> None:
    """Give the right to add and configure clusters."""
    with transaction.atomic():
        user.user_permissions.add(*_cluster_rights())
        _set(user, is_staff=True)
        note(user, "right to set up clusters", "granted")


def forbid_clusters(user: Any) -> None:
    """Take the right to add clusters away; staff with other permissions stay staff."""
    with transaction.atomic():
        user.user_permissions.remove(*_cluster_rights())
        _set(user, is_staff=user.user_permissions.exists() or user.groups.exists())
        note(user, "right to set up clusters", "removed")


def _cluster_rights() -> Any:
    return Permission.objects.filter(content_type__app_label="experiments", codename__in=CLUSTER_RIGHTS)


def _set(user: Any, **fields: bool) -> None:
    """Store fields. Raise LastSuperuser if no superuser would remain."""
    accounts = get_user_model()._default_manager
    with transaction.atomic():
        # The lock serialises two superusers who close each other's account.
        superusers = accounts.select_for_update().filter(is_superuser=True, is_active=True).order_by("pk")
        is_last = [superuser.pk for superuser in superusers] == [user.pk]
        if is_last and (fields.get("is_active") is False or fields.get("is_superuser") is False):
            raise LastSuperuser("There would be no superuser left: give another user superuser rights first.")
        for name, value in fields.items():
            setattr(user, name, value)
        user.save(update_fields=list(fields))
