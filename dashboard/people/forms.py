"""Forms of allauth with labels of this site."""

from __future__ import annotations

from typing import Any, Final

from allauth.account.forms import (
    ChangePasswordForm,
    LoginForm,
    ResetPasswordForm,
    ResetPasswordKeyForm,
    SetPasswordForm,
    SignupForm,
)
from allauth.account.utils import filter_users_by_email, filter_users_by_username
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import AddWebAuthnForm, LoginWebAuthnForm
from allauth.mfa.webauthn.internal.auth import parse_authentication_response
from allauth.socialaccount.forms import SignupForm as ProviderSignUpForm
from django import forms
from django.contrib.auth.password_validation import get_default_password_validators, password_validators_help_text_html
from django.utils.html import format_html

from experiments.models.people.access import TokensEndWithThePassword

MOST_KEYS: Final = 20
"""Of an account: each request for one of them reads all."""
_LABELS: Final = {"username": "Name", "email": "E-mail"}


def days_field(most: int, initial: int) -> forms.IntegerField:
    """Return the field of a period of validity."""
    limits = f"Write a number of days from 1 to {most}."
    messages = dict.fromkeys(("invalid", "min_value", "max_value"), limits)
    return forms.IntegerField(
        label="Valid for, days", min_value=1, max_value=most, initial=initial, error_messages=messages
    )


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


class _TwoPasswords:
    """Mixin that shows errors of both passwords, and the rules for the user."""

    fields: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        user = getattr(self, "user", None)
        if user is None or not user.api_tokens.exists():
            rules = get_default_password_validators()
            rules = [rule for rule in rules if not isinstance(rule, TokensEndWithThePassword)]
            self.fields["password1"].help_text = password_validators_help_text_html(rules)

    def clean(self: Any) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean()  # type: ignore[misc]
        first, second = (self[name].value() or "" for name in ("password1", "password2"))
        if "password1" in self.errors and "password2" not in self.errors and first != second:
            self.add_error("password2", "You must type the same password each time.")
        return cleaned


class SignUpForm(_TwoPasswords, _Labelled, SignupForm):  # type: ignore[misc]
    """Sign-up with a password."""


class ChangeForm(_TwoPasswords, ChangePasswordForm):  # type: ignore[misc]
    """Change of the user's own password."""


class FirstPasswordForm(_TwoPasswords, SetPasswordForm):  # type: ignore[misc]
    """Password of an account that signs in through a provider."""


class LinkForm(_TwoPasswords, ResetPasswordKeyForm):  # type: ignore[misc]
    """Password chosen through a link."""


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
                self.fields[name].help_text = format_html("Another account has {} already.", value)


class AddKeyForm(AddWebAuthnForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        passwordless = self.fields["passwordless"]
        passwordless.label = "Use without a password"
        passwordless.help_text = "The key then asks for a fingerprint, a face or its PIN. Some keys cannot."

    def clean(self) -> dict[str, Any]:
        if Authenticator.objects.filter(user=self.user, type=Authenticator.Type.WEBAUTHN).count() >= MOST_KEYS:
            raise forms.ValidationError(f"You have {MOST_KEYS} keys. Remove one first.")
        cleaned: dict[str, Any] = super().clean()
        return cleaned


class KeySignInForm(LoginWebAuthnForm):  # type: ignore[misc]
    """Sign-in with a key alone, which must have verified its user.

    The challenge may be one of a second factor, for which allauth does not require this.
    """

    def clean_credential(self) -> Authenticator:
        answer = parse_authentication_response(self.cleaned_data["credential"]).response
        if not answer.authenticator_data.is_user_verified():
            raise get_adapter().validation_error("incorrect_code")
        return super().clean_credential()
