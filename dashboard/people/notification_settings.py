"""Forms of mails and webhooks, and the state of recent messages."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from allauth.core import ratelimit
from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import Exists, OuterRef
from django.http import HttpRequest

from dashboard.requests.concurrency_limits import Busy, acquire
from experiments.access import visible_experiments, visible_projects
from experiments.library import PUBLISHED_PROJECT
from experiments.models import Delivery, Experiment, NoticeChoices, Project, Webhook
from experiments.models.people.notifications import MOST_ATTEMPTS
from workers.notifications import outbox
from workers.notifications.address import Refused, checked, refuse_private

_LAST: Final = 5
_STEPPED: Final = "A metric changes its level (a step in a history)"
_AT_ONCE: Final = 3
"""Test messages of all users: fewer than one web process has threads."""


class ChoicesForm(forms.ModelForm):  # type: ignore[type-arg]  # no generic at run time
    class Meta:
        model = NoticeChoices
        fields: ClassVar = ["ended", "failed", "stepped", "of", "projects"]
        labels: ClassVar = {"stepped": _STEPPED}
        widgets: ClassVar = {"projects": forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"})}

    def __init__(self, user: Any, data: Any = None) -> None:
        super().__init__(data, instance=NoticeChoices.of_user(user), prefix="notices")
        projects: Any = self.fields["projects"]
        projects.queryset = visible_projects(user).exclude(slug=PUBLISHED_PROJECT).order_by("name")
        projects.label = "Projects, if only some"

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("of") == NoticeChoices.Of.SOME and not cleaned.get("projects") and "projects" not in self.errors:
            self.add_error("projects", "Choose at least one project, or another option above.")
        return cleaned


class WebhookForm(forms.ModelForm):  # type: ignore[type-arg]  # no generic at run time
    class Meta:
        model = Webhook
        fields: ClassVar = ["url", "ended", "failed", "stepped"]
        labels: ClassVar = {"url": "Address", "stepped": _STEPPED}
        help_texts: ClassVar = {"url": "A service that accepts JSON by POST: https://example.org/path."}

    def clean_url(self) -> str:
        url = str(self.cleaned_data["url"])
        try:
            _, host, _, _ = checked(url)
            refuse_private(host, settings.WEBHOOK_NETWORKS)
        except Refused as error:
            raise forms.ValidationError(str(error)) from None
        return url

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not any(cleaned.get(name) for name in ("ended", "failed", "stepped")):
            self.add_error("stepped", "Choose at least one event.")
        return cleaned


def of_account(user: Any) -> dict[str, Any]:
    """Return the context of mails on the account page."""
    return {
        "notices": ChoicesForm(user),
        "sends_mail": settings.SENDS_MAIL,
        "no_mail": outbox.NO_MAIL,
        "no_address": outbox.NO_ADDRESS,
        "deliveries": last_deliveries(user, user=user),
        "most_attempts": MOST_ATTEMPTS,
    }


def of_project(project: Project, user: Any) -> dict[str, Any]:
    """Return the context of webhooks on a project page."""
    return {
        "webhooks": project.webhooks.all(),
        "webhook_form": WebhookForm(prefix="webhook"),
        "deliveries": last_deliveries(user, webhook__project=project),
        "most_attempts": MOST_ATTEMPTS,
    }


def last_deliveries(reader: Any, **filters: Any) -> list[Delivery]:
    """Return the newest messages of a user or of webhooks, with their events.

    ``names`` is whether ``reader`` still sees the experiment, which may have another name or project now.
    """
    visible = visible_experiments(reader, Experiment.objects.filter(pk=OuterRef("event__experiment")))
    rows = (
        Delivery.objects.filter(**filters)
        .select_related("event__experiment", "event__trial", "webhook")
        .annotate(names=Exists(visible))
    )
    return list(rows.order_by("-pk")[:_LAST])


def send_test(request: HttpRequest, **to: Any) -> None:
    """Send a test message to a ``user`` or a ``webhook``, and show the result.

    Receivers may be slow, and each holds a thread of the site. E-mail addresses are not verified: they may be those of others.
    """
    if not ratelimit.consume(request, action="test_message"):
        messages.error(request, "Test not sent. You have sent many: wait ten minutes.", extra_tags="bad")
        return
    try:
        with acquire(request.user, "test-message", total=_AT_ONCE):
            delivery = outbox.test(**to)
    except Busy as error:
        messages.error(request, f"Test not sent. {error}", extra_tags="bad")
        return
    if delivery.state == Delivery.State.SENT:
        messages.success(request, f"Test sent. {delivery.result}", extra_tags="ok")
    else:
        messages.error(request, f"Test not sent. {delivery.result}", extra_tags="bad")
