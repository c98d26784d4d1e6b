"""Forms of allauth in this site's words."""

from __future__ import annotations

from typing import Any, Final

from allauth.account.forms import LoginForm, ResetPasswordForm, SignupForm
from allauth.account.utils import filter_users_by_email, filter_users_by_username
from allauth.mfa.webauthn.forms import AddWebAuthnForm
from allauth.socialaccount.forms import SignupForm as ProviderSignUpForm

_LABELS: Final = {"username": "Name", "email": "E-mail"}


class SignInForm(LoginForm):  # type: ignore[misc]
    """Name and password. The name is sent as ``username``, as it always was."""

    def add_prefix(self, field_name: str) -> str:
        return "username" if field_name == "login" else super().add_prefix(field_name)


class _Labelled:
    """A form whose fields are called as they are on every other page."""

    fields: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.fields.keys() & _LABELS:
            field = self.fields[name]
            field.label = _LABELS[name] if field.required else f"{_LABELS[name]} (optional)"
            field.widget.attrs.pop("placeholder", None)  # it only says the label in other words


class SignUpForm(_Labelled, SignupForm):  # type: ignore[misc]
    """An account with a password."""


class ResetForm(_Labelled, ResetPasswordForm):  # type: ignore[misc]
    """Where the link goes with which a new password is chosen."""


class NameForm(_Labelled, ProviderSignUpForm):  # type: ignore[misc]
    """The name of whom an identity provider sent. What another account has already is no proposal, and said at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, accounts_with in {"username": filter_users_by_username, "email": filter_users_by_email}.items():
            told = self.initial.get(name)
            if told and accounts_with(told):
                self.initial[name] = ""
                self.fields[name].help_text = f"Another account has {told} already."


class AddKeyForm(AddWebAuthnForm):  # type: ignore[misc]
    """A key and its name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        alone = self.fields["passwordless"]
        alone.label = "Signs in without a password"
        alone.help_text = "The key itself then asks for a finger, a face or its PIN; not every key can."
