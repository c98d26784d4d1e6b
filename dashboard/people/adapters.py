"""Adapters of allauth: sign-up, redirects, roles of groups, encrypted secrets."""

from __future__ import annotations

import base64
import hashlib
from typing import Any, ClassVar, Final

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from cryptography.fernet import Fernet
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from dashboard.people.backends import give_roles
from dashboard.people.invitations import invitation_of

NAME_TAKEN: Final = "Another account has this name."


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Adapter of accounts with a password."""

    error_messages: ClassVar = {
        **DefaultAccountAdapter.error_messages,
        "username_taken": NAME_TAKEN,
        "email_taken": "Another account has this e-mail address.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.SIGN_UP) or invitation_of(request) is not None

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("account")

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        return self.get_login_redirect_url(request)

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Return to the invitation if the user followed one."""
        invitation = invitation_of(request)
        return reverse("invitation") if invitation is not None else super().get_login_redirect_url(request)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        if settings.SENDS_MAIL:
            super().send_mail(template_prefix, email, context)


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Adapter of the identity provider; groups and invitations give roles."""

    error_messages: ClassVar = {
        **DefaultSocialAccountAdapter.error_messages,
        "email_taken": "Another account has this e-mail address. If it is yours, sign in to it and connect %s.",
        "no_password": "Set a password first: your account has no other way to sign in.",
    }

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return True

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        if sociallogin.is_existing:
            give_roles(sociallogin.user, _groups(sociallogin))

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> Any:
        user = super().save_user(request, sociallogin, form)
        give_roles(user, _groups(sociallogin))
        return user


def _groups(sociallogin: Any) -> list[str]:
    """Return the groups of a user from the user info or the ID token."""
    data: dict[str, Any] = sociallogin.account.extra_data
    for claims in (data.get("userinfo"), data.get("id_token"), data):
        groups = claims.get(settings.GROUPS_CLAIM) if isinstance(claims, dict) else None
        if isinstance(groups, list):
            return [group for group in groups if isinstance(group, str)]
    return []


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Encrypts secrets of second factors with the installation's key."""

    def encrypt(self, text: str) -> str:
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _cipher().decrypt(encrypted_text.encode()).decode()


def _cipher() -> Fernet:
    key = hashlib.sha256(b"second factors:" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))
