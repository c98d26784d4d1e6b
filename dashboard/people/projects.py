"""Projects: members, roles, invitations, webhooks, quotas."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.core.exceptions import BadRequest, PermissionDenied
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from analysis import numbers
from dashboard.people.change_rows import change_row, with_addresses, with_words
from dashboard.people.forms import days_field
from dashboard.people.notification_settings import WebhookForm, of_project, send_test
from dashboard.requests.lookup import query_value
from experiments.access import may_manage, role_in, visible_projects
from experiments.cluster_kinds.machines import addresses_of
from experiments.errors import LastMaintainer, ProjectInUse
from experiments.library import PUBLISHED_PROJECT
from experiments.models import Invitation, Membership, Project, Webhook
from experiments.models.changes import changes
from experiments.models.people.invitation import DAYS
from experiments.models.people.notifications import MOST_WEBHOOKS
from experiments.models.people.project import DEFAULT_PROJECT
from experiments.models.serialised import lock_name

Role = Membership.Role
_CHANGES_PER_PAGE: Final = 100


class MemberForm(forms.Form):
    name = forms.CharField(max_length=150, help_text="Name of an existing account.")
    role = forms.ChoiceField(choices=Role.choices, initial=Role.SUBMITTER)

    def clean_name(self) -> Any:
        return _account(self.cleaned_data["name"], "Invite the user instead.")


class InvitationForm(forms.Form):
    whom = forms.CharField(label="For", max_length=120, required=False, help_text="A note for you: who gets the link.")
    role = forms.ChoiceField(choices=Role.choices, initial=Role.SUBMITTER)
    days = days_field(30, initial=DAYS)


class _UniqueName:
    """Mixin that refuses names of other projects: lists show the name alone."""

    cleaned_data: dict[str, Any]
    instance: Any = None
    """The project that is renamed; it keeps its name."""

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if self.instance is not None and self.instance.name == name:
            return name  # not changed: projects with equal names may exist
        if not any(map(str.isalnum, name)):
            raise forms.ValidationError("A name needs letters or digits.")
        others = Project.objects.filter(name__iexact=name)
        if self.instance is not None:
            others = others.exclude(pk=self.instance.pk)
        if others.exists():
            raise forms.ValidationError("Another project has this name.")
        return name


class NewProjectForm(_UniqueName, forms.Form):
    name = forms.CharField(max_length=120)
    maintainer = forms.CharField(max_length=150, help_text="Name of an account; this user gives the other roles.")

    def clean_maintainer(self) -> Any:
        return _account(self.cleaned_data["maintainer"], "Create it on the page Users first.")


class SettingsForm(_UniqueName, forms.ModelForm):  # type: ignore[type-arg]  # no generic at run time
    class Meta:
        model = Project
        fields: ClassVar = ["name", "most_queued_trials", "most_machine_hours", "most_disk_gib", "most_capture_gib"]
        labels: ClassVar = {
            "most_queued_trials": "Queued trials",
            "most_machine_hours": "Machine-hours",
            "most_disk_gib": "Files, GiB",
            "most_capture_gib": "Captures, GiB",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        limits = {
            "most_queued_trials": settings.QUOTA_QUEUED_TRIALS,
            "most_machine_hours": settings.QUOTA_MACHINE_HOURS,
            "most_disk_gib": settings.QUOTA_DISK_GIB,
            "most_capture_gib": settings.QUOTA_CAPTURE_GIB,
        }
        for name, most in limits.items():
            words = numbers.grouped(most) if most else "none"
            text = str(self.fields[name].help_text)
            self.fields[name].help_text = text.replace("the installation;", f"the installation ({words});")
            self.fields[name].error_messages["max_value"] = "Too large. Write 0 for no limit."

    def clean(self) -> dict[str, Any]:
        """Refuse a limit of captures that files reach first: captures are files."""
        cleaned = super().clean() or self.cleaned_data
        files, captures = cleaned.get("most_disk_gib"), cleaned.get("most_capture_gib")
        most = settings.QUOTA_DISK_GIB if files is None else files
        if captures is not None and most and captures > most and "most_disk_gib" in cleaned:
            limit = numbers.grouped(most)
            self.add_error(
                "most_capture_gib", f"Captures are files, limited to {limit} GiB: enter at most {limit}, or 0."
            )
        return cleaned


def _account(name: str, advice: str) -> Any:
    user = get_user_model().objects.filter(username=name, is_active=True).first()
    if user is None:
        raise forms.ValidationError(f"No account has this name. {advice}")
    return user


@require_http_methods(["GET", "HEAD", "POST"])
def projects(request: HttpRequest) -> HttpResponse:
    """List the projects of the user; on POST create one, for superusers."""
    if request.method != "POST":
        return _projects_page(request, NewProjectForm())
    if not request.user.is_superuser:
        raise PermissionDenied
    form = NewProjectForm(request.POST)
    with transaction.atomic():
        lock_name("projects")
        if not form.is_valid():
            return _projects_page(request, form, status=422)
        project = Project.create_named(form.cleaned_data["name"])
        project.set_role(form.cleaned_data["maintainer"], Role.MAINTAINER)
    messages.success(request, f"Project {project.name} created.", extra_tags="ok")
    return redirect("project", project.slug)


@require_POST
@transaction.atomic
def change(request: HttpRequest, slug: str) -> HttpResponse:
    if not request.user.is_superuser:
        raise PermissionDenied
    lock_name("projects")  # two projects could get one name
    project = _project(request, slug)
    form = SettingsForm(request.POST, instance=Project.objects.get(pk=project.pk), prefix="settings")
    if not form.is_valid():
        return project_page(request, project, status=422, settings_form=form)
    form.save()
    messages.success(request, f"{form.instance.name} saved.", extra_tags="ok")
    return redirect("project", project.slug)


@require_POST
def remove(request: HttpRequest, slug: str) -> HttpResponse:
    """Delete an empty project after its name was typed to confirm."""
    if not request.user.is_superuser:
        raise PermissionDenied
    project = _project(request, slug)
    if request.POST.get("name", "").strip() != project.name:
        messages.error(request, f"Project not deleted. Type its name, {project.name}, to confirm.", extra_tags="bad")
        return redirect("project", slug)
    try:
        project.remove()
    except ProjectInUse as error:
        messages.error(request, str(error), extra_tags="bad")
        return redirect("project", slug)
    messages.success(request, f"{project.name} is deleted.", extra_tags="ok")
    return redirect("projects")


def _projects_page(request: HttpRequest, form: NewProjectForm, *, status: int = 200) -> HttpResponse:
    visible = _projects(request)  # joined to the memberships of this user alone
    rows = (
        Project.objects.filter(pk__in=visible.values("pk"))
        .order_by(*visible.query.order_by)
        .annotate(members=Count("memberships", distinct=True), studies=Count("experiments", distinct=True))
    )
    user: Any = request.user
    roles = dict(Membership.objects.filter(user=user).values_list("project_id", "role"))
    projects_with_roles = [
        (project, roles.get(project.pk, "superuser" if user.is_superuser else "")) for project in rows
    ]
    context = {"place": "projects", "rows": projects_with_roles, "form": form if user.is_superuser else None}
    return render(request, "people/projects.html", context, status=status)


@require_GET
def page(request: HttpRequest, slug: str) -> HttpResponse:
    return project_page(request, _project(request, slug))


@require_POST
def add(request: HttpRequest, slug: str) -> HttpResponse:
    project, form = managed(request, slug), MemberForm(request.POST, prefix="member")
    if form.is_valid() and project.memberships.filter(user=form.cleaned_data["name"]).exists():
        form.add_error("name", "This user is a member already. Change the role in the list of members.")
    if not form.is_valid():
        return project_page(request, project, status=422, member_form=form)
    return _changed(request, project, form.cleaned_data["name"], form.cleaned_data["role"])


@require_POST
def member(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Change a role or (`remove`) end a membership; users may end their own."""
    project = _project(request, slug)
    membership = get_object_or_404(project.memberships.select_related("user"), pk=pk)
    removes, is_own = "remove" in request.POST, membership.user == request.user
    if not may_manage(request.user, project) and not (removes and is_own):
        raise PermissionDenied
    role = request.POST.get("role", "")
    if not removes and role not in Role.values:
        raise BadRequest(f"There is no role {role!r}.")
    return _changed(request, project, membership.user, None if removes else role)


@require_POST
@cache_control(private=True, no_store=True)
@sensitive_variables("key")
def invite(request: HttpRequest, slug: str) -> HttpResponse:
    """Create an invitation. Only this response has its link, so there is no redirect."""
    project, form = managed(request, slug), InvitationForm(request.POST, prefix="invitation")
    if not form.is_valid():
        return project_page(request, project, status=422, invitation_form=form)
    data = form.cleaned_data
    _, key = Invitation.issue(project, data["role"], by=request.user, whom=data["whom"], days=data["days"])
    link = request.build_absolute_uri(reverse("invitation-come", args=[key]))
    return project_page(request, project, link=link)


@require_POST
def withdraw(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    project = managed(request, slug)
    get_object_or_404(project.invitations.open(), pk=pk).delete()
    messages.success(request, "Invitation withdrawn.", extra_tags="ok")
    return redirect("project", project.slug)


@require_POST
@cache_control(private=True, no_store=True)
@transaction.atomic
def new_webhook(request: HttpRequest, slug: str) -> HttpResponse:
    """Create a webhook. Only this response has its secret, so there is no redirect."""
    project, form = managed(request, slug), WebhookForm(request.POST, prefix="webhook")
    host = urlsplit(form.cleaned_data["url"]).hostname or "" if form.is_valid() else ""
    has_address = not host or bool(addresses_of(host))  # before the lock: it may take seconds
    # The lock serialises concurrent requests.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if form.is_valid() and project.webhooks.count() >= MOST_WEBHOOKS:
        form.add_error("url", f"A project has at most {MOST_WEBHOOKS} webhooks.")
    if not form.is_valid():
        return project_page(request, project, status=422, webhook_form=form)
    webhook = form.save(commit=False)
    webhook.project, webhook.made_by = project, request.user
    webhook.save()
    if not has_address:
        words = f"This server could not resolve the name {host}. Check the URL, then send a test message."
        messages.warning(request, words, extra_tags="warning")
    return project_page(request, project, new_webhook=webhook, secret=webhook.secret)


@require_POST
def send_test_webhook(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Send a test message and report the result."""
    send_test(request, webhook=_webhook(request, slug, pk))
    return redirect(f"{reverse('project', args=[slug])}#webhooks")


@require_POST
def remove_webhook(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    _webhook(request, slug, pk).delete()
    messages.success(request, "Webhook deleted.", extra_tags="ok")
    return redirect(f"{reverse('project', args=[slug])}#webhooks")


def _webhook(request: HttpRequest, slug: str, pk: int) -> Webhook:
    return get_object_or_404(managed(request, slug).webhooks, pk=pk)


def _changed(request: HttpRequest, project: Project, user: Any, role: str | None) -> HttpResponse:
    try:
        if role is None:
            project.dismiss(user)
        else:
            project.set_role(user, role)
    except LastMaintainer as error:
        messages.error(request, str(error), extra_tags="bad")
    else:
        words = "is no longer a member" if role is None else f"is now a {role}"
        messages.success(request, f"{user.get_username()} {words}.", extra_tags="ok")
    sees = role_in(request.user, project) is not None
    return redirect("project", project.slug) if sees else redirect("projects")


def _projects(request: HttpRequest) -> QuerySet[Project]:
    return visible_projects(request.user).exclude(slug=PUBLISHED_PROJECT).order_by("name", "slug")


def _project(request: HttpRequest, slug: str) -> Project:
    return get_object_or_404(_projects(request), slug=slug)


def managed(request: HttpRequest, slug: str) -> Project:
    """Return a project that the user maintains. Raise PermissionDenied."""
    project = _project(request, slug)
    if not may_manage(request.user, project):
        raise PermissionDenied
    return project


def project_page(request: HttpRequest, project: Project, *, status: int = 200, **overrides: Any) -> HttpResponse:
    """Render the page of a project; ``overrides`` replace values of its context."""
    rank = Role.values.index
    members = sorted(
        project.memberships.select_related("user"), key=lambda member: (-rank(member.role), member.user.get_username())
    )
    manages = may_manage(request.user, project)
    own_role = next((member.role for member in members if member.user == request.user), None)
    context = {
        "place": "projects",
        "project": project,
        "members": members,
        "roles": Role.choices,
        "manages": manages,
        "own_role": own_role,
        "experiments": project.experiments.aggregate(
            all=Count("pk"), mine=Count("pk", filter=Q(owner=request.user.pk))
        ),
    }
    if manages:
        context |= of_project(project, request.user) | {
            "invitations": project.invitations.open().select_related("invited_by").order_by("expires_at"),
            "member_form": MemberForm(prefix="member"),
            "invitation_form": InvitationForm(prefix="invitation"),
        }
    if request.user.is_superuser and manages:
        context |= {
            "settings_form": SettingsForm(instance=project, prefix="settings"),
            "is_default": project.slug == DEFAULT_PROJECT,
            "contents": project.contents,
        }
    return render(request, "people/project.html", context | overrides, status=status)


@require_GET
def project_changes(request: HttpRequest, slug: str) -> HttpResponse:
    return _changes_page(request, managed(request, slug))


@require_GET
def all_changes(request: HttpRequest) -> HttpResponse:
    if not request.user.is_superuser:
        raise PermissionDenied
    return _changes_page(request, None)


def _changes_page(request: HttpRequest, project: Project | None) -> HttpResponse:
    words = query_value(request, "q")
    try:
        day = forms.DateField(required=False).clean(query_value(request, "until"))
    except forms.ValidationError:
        day = None
    entries = with_words(changes(project), words)
    if day is not None:
        entries = entries.filter(timestamp__date__lte=day)
    page = Paginator(entries, _CHANGES_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "place": "projects",
        "project": project,
        "rows": with_addresses([change_row(entry) for entry in page], of_users=project is None),
        "page": page,
        "words": words,
        "until": day.isoformat() if day else "",
    }
    return render(request, "people/changes.html", context)
