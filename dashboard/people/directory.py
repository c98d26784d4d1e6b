"""Sign-in with a password of a directory (LDAP), imported only if it is set."""

from __future__ import annotations

from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth import get_user_model
from django_auth_ldap.backend import LDAPBackend  # type: ignore[import-untyped]

from dashboard.people.backends import AccountBackend, give_roles, plain_name


class DirectoryBackend(LDAPBackend):  # type: ignore[misc]
    """Backend of django-auth-ldap without accounts with a password or a provider."""

    def authenticate_ldap_user(self, ldap_user: Any, password: str) -> Any:
        """Ask the directory, unless the account has a password or a provider.

        An entry named like an administrator would be that administrator, and the directory would see the password of the account. A user
        of the provider chooses a name, and could wait in the account for the entry's owner. A name that the directory only compares as
        equal to an entry's would make a second account of it.
        """
        if plain_name(ldap_user._username) != ldap_user._username:
            return None
        accounts = get_user_model()._default_manager.filter(username__iexact=ldap_user._username)
        connected = SocialAccount.objects.filter(user__in=accounts)
        if any(account.has_usable_password() for account in accounts) or connected.exists():
            return None
        user = super().authenticate_ldap_user(ldap_user, password)
        if user is not None and hasattr(settings, "AUTH_LDAP_GROUP_SEARCH"):
            give_roles(user, ldap_user.group_names)  # now: after a second factor the entry is no longer known
        return user

    def get_user(self, user_id: Any) -> Any:
        """Return an open account; the library would return closed ones too."""
        return AccountBackend().get_user(user_id)
