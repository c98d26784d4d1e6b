"""Adapters of allauth: sign-up, redirects, roles of groups, encrypted secrets."""

from __future__ import annotations

import base64
import hashlib
import smtplib
import threading
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.stagekit import clear_login
from allauth.account.utils import filter_users_by_email, filter_users_by_username
from allauth.core import context as allauth_context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from cryptography.fernet import Fernet
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.mail import EmailMessage
from django.db import transaction
from django.http import HttpRequest
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from dashboard.middleware.front import refuse
from dashboard.people.backends import give_roles, plain_name
from dashboard.people.invitations import accept, expired, invitation_of
from experiments.models.serialised import lock_name

log = structlog.get_logger()
NAME_TAKEN: Final = "Another account has this name."
NAME_LETTERS: Final = "Use letters, digits and @ . + - _ only."
EMAIL_TAKEN: Final = "Another account has this e-mail address."
_BEGUN_WITH: Final = "sign_in_began_with"
"""Session key: the hash of the password of a sign-in that waits for its second factor."""


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Adapter of accounts with a password."""

    error_messages: ClassVar = {
        **DefaultAccountAdapter.error_messages,
        "username_taken": NAME_TAKEN,
        "username_letters": NAME_LETTERS,
        "username_form": "Write the name in plain letters: some of these are other forms of letters.",
        "email_taken": EMAIL_TAKEN,
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.SIGN_UP) or invitation_of(request) is not None

    def clean_username(self, username: str, shallow: bool = False) -> str:
        """Refuse another form of a name: both would share a count of wrong passwords."""
        try:
            username = super().clean_username(username, shallow)
        except ValidationError as error:
            raise self.validation_error("username_letters") if error.code == "invalid" else error from None
        if plain_name(username) != username:
            raise self.validation_error("username_form")
        if not shallow and filter_users_by_username(username.casefold()).exists():
            raise self.validation_error("username_taken")
        return username

    def is_safe_url(self, url: str) -> bool:
        """Allow only pages of this site.

        Other allowed hosts, such as localhost, can be the user's own machine.
        """
        request = allauth_context.request
        return url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure())

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("account")

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        return self.get_login_redirect_url(request)

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Return to the invitation if the user followed one."""
        invitation = invitation_of(request)
        return reverse("invitation") if invitation is not None else super().get_login_redirect_url(request)

    def save_user(self, request: HttpRequest, user: Any, form: Any, commit: bool = True) -> Any:
        """Create the account, and accept the invitation: it makes one account."""
        with transaction.atomic():
            lock_name("accounts")
            if why := account_obstacle(form.cleaned_data):  # another request made it since the form was checked
                raise ImmediateHttpResponse(refuse(request, 409, why))
            user = super().save_user(request, user, form, commit)
            if commit and invitation_of(request) is not None and not accept(request, user) and not settings.SIGN_UP:
                raise ImmediateHttpResponse(expired(request))  # another user was faster
        return user

    def set_password(self, user: Any, password: str) -> None:
        """Store the password alone. Raise PermissionDenied if the account changed.

        Other requests may have done either since it was read: a reset link works once.
        """
        with transaction.atomic():
            stored = get_user_model()._default_manager.select_for_update().get(pk=user.pk)
            if not stored.is_active or stored.password != user.password:
                raise PermissionDenied
            user.set_password(password)
            user.save(update_fields=["password"])

    def pre_login(self, request: HttpRequest, user: Any, **options: Any) -> Any:
        """Store with which password the sign-in begins: a second factor may follow."""
        response = super().pre_login(request, user, **options)
        if response is None:
            request.session[_BEGUN_WITH] = user.get_session_auth_hash()
        return response

    def login(self, request: HttpRequest, user: Any) -> None:
        """Refuse a sign-in that began with another password than the account has now."""
        if request.session.pop(_BEGUN_WITH, user.get_session_auth_hash()) != user.get_session_auth_hash():
            clear_login(request)
            raise ImmediateHttpResponse(redirect("login"))
        super().login(request, user)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Leave passwords to axes: the limit is for codes of second factors."""

    def get_reset_password_from_key_url(self, key: str) -> str:
        """Return an address of `RANKWIRE_ADDRESS`: requests can name any host."""
        path = reverse("account_reset_password_from_key", kwargs={"uidb36": "UID", "key": "KEY"})
        return f"{settings.PUBLIC_ADDRESS}{path.replace('UID-KEY', key)}"

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail after the answer, whose time would show an account."""
        if settings.SENDS_MAIL:
            about = {"request": allauth_context.request, "email": email, "address": settings.PUBLIC_ADDRESS}
            message = self.render_mail(template_prefix, email, {**about, **context})
            threading.Thread(target=_send, args=[message]).start()


def account_obstacle(data: Mapping[str, Any]) -> str:
    """Return why an account with this name and address cannot be made; '' if it can."""
    name, email = str(data.get("username") or ""), str(data.get("email") or "")
    if name and filter_users_by_username(name).exists():
        return NAME_TAKEN
    return EMAIL_TAKEN if email and filter_users_by_email(email) else ""


def _send(message: EmailMessage) -> None:
    try:
        message.send()
    except (OSError, smtplib.SMTPException) as error:
        log.warning("mail_not_sent", subject=message.subject, reason=str(error))


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Adapter of the identity provider; groups and invitations give roles."""

    error_messages: ClassVar = {
        **DefaultSocialAccountAdapter.error_messages,
        "email_taken": f"{EMAIL_TAKEN} If it is yours, sign in to it and connect %s.",
        "no_password": "Set a password first: your account has no other way to sign in.",
    }

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return True

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Require an ID token for this session, client and user.

        OpenID Connect Core 1.0, 3.1.3.7 (nonce, azp) and 5.3.2 (user info). allauth checks issuer, audience and time.
        """
        token = sociallogin.account.extra_data.get("id_token", {})
        client_id = sociallogin.account.get_provider(request).app.client_id
        nonce = sociallogin.state.get("nonce")  # None if an older version began the sign-in
        if nonce is None or (token.get("sub"), token.get("nonce"), token.get("azp", client_id)) != (
            sociallogin.account.uid,
            nonce,
            client_id,
        ):
            raise PermissionDenied
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
