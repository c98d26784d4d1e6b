"""Forms of allauth with labels of this site."""

from __future__ import annotations

from typing import Any, Final

from allauth.account.forms import LoginForm, ResetPasswordForm, SignupForm
from allauth.account.utils import filter_users_by_email, filter_users_by_username
from allauth.mfa.webauthn.forms import AddWebAuthnForm
from allauth.socialaccount.forms import SignupForm as ProviderSignUpForm

_LABELS: Final = {"username": "Name", "email": "E-mail"}


class SignInForm(LoginForm):  # type: ignore[misc]
    """Name and password; the field of the name is ``username``."""

    def add_prefix(self, field_name: str) -> str:
        return "username" if field_name == "login" else super().add_prefix(field_name)


class _Labelled:
    """Mixin with the field labels of this site."""

    fields: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.fields.keys() & _LABELS:
            field = self.fields[name]
            field.label = _LABELS[name] if field.required else f"{_LABELS[name]} (optional)"
            field.widget.attrs.pop("placeholder", None)  # repeats the label


class SignUpForm(_Labelled, SignupForm):  # type: ignore[misc]
    """Sign-up with a password."""


class ResetForm(_Labelled, ResetPasswordForm):  # type: ignore[misc]
    """Address of the link to reset a password."""


class NameForm(_Labelled, ProviderSignUpForm):  # type: ignore[misc]
    """Sign-up through an identity provider, without proposals that are taken."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, accounts_with in {"username": filter_users_by_username, "email": filter_users_by_email}.items():
            value = self.initial.get(name)
            if value and accounts_with(value):
                self.initial[name] = ""
                self.fields[name].help_text = f"Another account has {value} already."


class AddKeyForm(AddWebAuthnForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        passwordless = self.fields["passwordless"]
        passwordless.label = "Use without a password"
        passwordless.help_text = "The key then asks for a fingerprint, a face or its PIN. Some keys cannot."
