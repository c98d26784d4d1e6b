"""The form of the sign-in page."""

from __future__ import annotations

from allauth.account.forms import LoginForm


class SignInForm(LoginForm):  # type: ignore[misc]
    """Name and password. The name is sent as ``username``, as it always was."""

    def add_prefix(self, field_name: str) -> str:
        return "username" if field_name == "login" else super().add_prefix(field_name)
