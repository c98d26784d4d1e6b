"""Forms of allauth in this site's words."""

from __future__ import annotations

from typing import Any

from allauth.account.forms import LoginForm
from allauth.mfa.webauthn.forms import AddWebAuthnForm


class SignInForm(LoginForm):  # type: ignore[misc]
    """Name and password. The name is sent as ``username``, as it always was."""

    def add_prefix(self, field_name: str) -> str:
        return "username" if field_name == "login" else super().add_prefix(field_name)


class AddKeyForm(AddWebAuthnForm):  # type: ignore[misc]
    """A key and its name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        alone = self.fields["passwordless"]
        alone.label = "Signs in without a password"
        alone.help_text = "The key itself then asks for a finger, a face or its PIN; not every key can."
