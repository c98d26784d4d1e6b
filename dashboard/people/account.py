"""Account page: roles, API tokens, display, notifications."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_POST

from dashboard.people.forms import days_field
from dashboard.people.notification_settings import ChoicesForm, of_account, send_test
from dashboard.people.preferences import PreferencesForm
from experiments.access import visible_projects
from experiments.library import PUBLISHED_PROJECT
from experiments.models import ApiToken, Membership, Preferences, Project
from experiments.models.people.access import LONGEST_DAYS

_MAY: Final = {
    ApiToken.Scope.READ: "read",
    ApiToken.Scope.SUBMIT: "read and submit",
    ApiToken.Scope.MAINTAIN: "everything that you may",
}


class TokenForm(forms.Form):
    name = forms.CharField(max_length=80, help_text="Its purpose: a machine, a script.")
    scope = forms.ChoiceField(label="Rights", choices=list(_MAY.items()), help_text="At most what your role allows.")
    project = forms.ModelChoiceField(Project.objects.none(), to_field_name="slug", required=False)
    days = days_field(LONGEST_DAYS, initial=90)

    def __init__(self, user: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        project: Any = self.fields["project"]
        project.queryset, project.empty_label = (
            visible_projects(user).exclude(slug=PUBLISHED_PROJECT).order_by("name"),
            "all my projects",
        )

    def clean_name(self) -> str:
        """Refuse the name of another valid token: lists and the change log show the name."""
        name = str(self.cleaned_data["name"])
        if any(not token.is_over for token in ApiToken.objects.filter(user=self.user, name=name)):
            raise forms.ValidationError("Another of your tokens has this name.")
        return name


@require_GET
def page(request: HttpRequest) -> HttpResponse:
    return account_page(request)


@require_POST
@cache_control(private=True, no_store=True)
@sensitive_variables("key")
def issue(request: HttpRequest) -> HttpResponse:
    """Create a token. Only this response has its key, so there is no redirect."""
    form = TokenForm(request.user, request.POST)
    if not form.is_valid():
        return account_page(request, form, status=422)
    data = form.cleaned_data
    token, key = ApiToken.issue(
        request.user, data["name"], scope=data["scope"], project=data["project"], days=data["days"]
    )
    return account_page(request, issued=token, key=key)


@require_POST
def end(request: HttpRequest, pk: int) -> HttpResponse:
    token = get_object_or_404(ApiToken, pk=pk, user=request.user)
    token.delete()
    messages.success(request, f"Token {token.name} deleted.", extra_tags="ok")
    return redirect("account")


@require_POST
def display(request: HttpRequest) -> HttpResponse:
    form = PreferencesForm(request.user, request.POST)
    if not form.is_valid():
        return account_page(request, status=422, display=form)
    form.save()
    messages.success(request, "Display settings saved.", extra_tags="ok")
    return redirect("account")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    chosen = request.POST.get("theme", "")
    if chosen not in Preferences.Theme.values:
        raise BadRequest(f"There is no theme {chosen!r}.")
    Preferences.keep_theme(request.user, chosen)
    return HttpResponse(status=204)


@require_POST
def choose_notices(request: HttpRequest) -> HttpResponse:
    """Save the events that are sent by mail."""
    form = ChoicesForm(request.user, request.POST)
    if not form.is_valid():
        return account_page(request, status=422, notices=form)
    with transaction.atomic():
        form.save()
    messages.success(request, "Mail settings saved.", extra_tags="ok")
    return redirect(f"{reverse('account')}#mails")


@require_POST
def send_test_mail(request: HttpRequest) -> HttpResponse:
    """Send a test mail and report the result."""
    send_test(request, user=request.user)
    return redirect(f"{reverse('account')}#mails")


def account_page(
    request: HttpRequest, form: TokenForm | None = None, *, status: int = 200, **overrides: Any
) -> HttpResponse:
    """Render the page; ``form`` and ``overrides`` replace values of its context."""
    user: Any = request.user
    tokens = ApiToken.objects.filter(user=user).select_related("project").order_by("-created_at", "-pk")
    context = {
        "display": PreferencesForm(user),
        "form": form or TokenForm(user),
        "tokens": [(token, _MAY[ApiToken.Scope(token.scope)]) for token in tokens],
        "memberships": Membership.objects.filter(user=user).select_related("project").order_by("project__name"),
        **of_account(user),
        **overrides,
    }
    return render(request, "people/account.html", context, status=status)
