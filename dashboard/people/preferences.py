"""Preferences of a user: theme and time zone."""

from __future__ import annotations

from functools import cache
from itertools import groupby
from typing import Any, ClassVar
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib.auth import get_user_model
from django.http import HttpRequest

from experiments.models import Preferences


@cache
def _zones() -> list[Any]:
    """Return time zones by region, without aliases for old programs."""
    names = sorted(name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "SystemV/")))
    regions = groupby(names, key=lambda name: name.partition("/")[0])
    grouped = [
        (region, [(name, name.partition("/")[2].replace("_", " ")) for name in members]) for region, members in regions
    ]
    return [("", f"default: {settings.TIME_ZONE}"), ("UTC", "UTC"), *grouped]


class PreferencesForm(forms.ModelForm):  # type: ignore[type-arg]  # no generic at run time
    time_zone = forms.ChoiceField(
        choices=_zones, required=False, help_text="For pages and mails. REST and files use UTC."
    )

    class Meta:
        model = Preferences
        fields: ClassVar = ["theme", "time_zone"]

    def __init__(self, user: Any, data: Any = None) -> None:
        super().__init__(data, instance=Preferences.of_user(user), prefix="display")


def _is_new_installation() -> bool:
    """Return whether `admin` is the only user and has never signed in."""
    return not get_user_model()._default_manager.exclude(username="admin", last_login__isnull=True).exists()


def accounts(request: HttpRequest) -> dict[str, Any]:
    """Provide templates with settings of accounts and the user's theme."""
    user: Any = getattr(request, "user", None)
    has_account = user is not None and user.is_authenticated and user.pk
    return {
        "sends_mail": settings.SENDS_MAIL,
        "signup_is_open": settings.SIGN_UP,
        "theme": Preferences.of_user(user).theme if has_account else "",
        "has_identity_provider": bool(settings.IDENTITY_PROVIDERS),
        "is_new_installation": _is_new_installation,
    }
