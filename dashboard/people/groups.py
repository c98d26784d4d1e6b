"""Roles that come with groups of an identity provider or a directory (the setting ``RANKWIRE_GROUPS``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib.auth.signals import user_logged_in
from django.db import transaction
from django.dispatch import receiver

from experiments.models import Membership, Project


def give_roles(user: Any, groups: Iterable[str]) -> None:
    """Give ``user`` the roles of these groups, and take those away that a group gave before and gives no more.

    What somebody gave by hand stays as it is. A project that does not exist gives nothing.
    """
    ranks = Membership.Role.values
    wanted: dict[str, str] = {}
    for group in groups:
        for slug, role in settings.GROUP_ROLES.get(group, ()):
            wanted[slug] = max(role, wanted.get(slug, ranks[0]), key=ranks.index)
    with transaction.atomic():
        user.memberships.filter(by_group=True).exclude(project__slug__in=wanted).delete()
        for project in Project.objects.filter(slug__in=wanted):
            role = wanted[project.slug]
            member, is_new = user.memberships.get_or_create(project=project, defaults={"role": role, "by_group": True})
            if not is_new and member.by_group and member.role != role:
                member.role = role
                member.save(update_fields=["role"])


@receiver(user_logged_in)
def give_roles_of_directory(user: Any, **_: Any) -> None:
    """Bring roles up to date for somebody whom the directory has just let in (django-auth-ldap leaves its entry on the user)."""
    entry = getattr(user, "ldap_user", None)
    if entry is not None and hasattr(settings, "AUTH_LDAP_GROUP_SEARCH"):
        give_roles(user, entry.group_names)
