"""Users page, for superusers: list, new accounts, changes of an account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, TypeVar

from allauth.account.forms import default_token_generator
from allauth.account.models import EmailAddress
from allauth.account.utils import filter_users_by_email, filter_users_by_username, user_pk_to_url_str
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from auditlog.context import disable_auditlog
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Count, Model, Prefetch, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from analysis.numbers import plural
from dashboard.people.adapters import EMAIL_TAKEN, NAME_LETTERS, NAME_TAKEN, account_obstacle
from dashboard.people.backends import locked, unlock
from dashboard.requests.lookup import MOST_WORDS, query_value
from experiments.access import may_set_up_clusters
from experiments.errors import AccountUnchanged, LastSuperuser
from experiments.library import PUBLISHED_PROJECT
from experiments.models import Event, Experiment, Membership, NoticeChoices, Preferences, Project
from experiments.models.changes import note
from experiments.models.people import accounts
from experiments.models.serialised import lock_name

PAGE: Final = 50
KINDS: Final = {
    "": ("all accounts", Q()),
    "open": ("open accounts", Q(is_active=True)),
    "superusers": ("superusers", Q(is_superuser=True)),
    "closed": ("closed accounts", Q(is_active=False)),
}
_LINK_DAYS: Final = settings.PASSWORD_RESET_TIMEOUT // (24 * 3600)
User = get_user_model()
Response = TypeVar("Response", bound=HttpResponse)


class AccountForm(forms.ModelForm):  # type: ignore[type-arg]  # no generic at run time
    """A new account; its user chooses the password through a link."""

    project = forms.ModelChoiceField(
        Project.objects.none(),
        to_field_name="slug",
        required=False,
        empty_label="none",
        help_text="Without one, the user sees published studies and clusters, and runs nothing.",
    )
    role = forms.ChoiceField(
        choices=[("", "none"), *Membership.Role.choices], required=False, help_text="In that project."
    )

    class Meta:
        model = User
        fields: ClassVar = ["username", "email"]
        labels: ClassVar = {"username": "Name", "email": "E-mail"}
        help_texts: ClassVar = {"username": "To sign in with: letters, digits and @ . + - _"}
        error_messages: ClassVar = {"username": {"unique": NAME_TAKEN, "invalid": NAME_LETTERS}}

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        projects: Any = self.fields["project"]
        projects.queryset = Project.objects.exclude(slug=PUBLISHED_PROJECT).order_by("name")

    def clean_username(self) -> str:
        username = str(self.cleaned_data["username"])
        if filter_users_by_username(username).exists():  # in upper or lower case
            raise forms.ValidationError(NAME_TAKEN)
        return username

    def clean_email(self) -> str:
        email = str(self.cleaned_data["email"])
        if email and filter_users_by_email(email):
            raise forms.ValidationError(EMAIL_TAKEN)
        return email

    def clean(self) -> dict[str, Any]:
        """Require project and role together: alone, either would be dropped."""
        cleaned = super().clean() or self.cleaned_data
        if not self.errors and bool(cleaned["project"]) != bool(cleaned["role"]):
            at, choice = ("role", "a role in this project") if cleaned["project"] else ("project", "a project")
            self.add_error(at, f"Choose {choice}, or none for both.")
        return cleaned

    def make(self) -> Any:
        """Create the account without a password, and its membership if a project is given.

        Raise AccountUnchanged if another request made it meanwhile.
        """
        with transaction.atomic():
            lock_name("accounts")
            if why := account_obstacle(self.cleaned_data):
                raise AccountUnchanged(why)
            user = self.save(commit=False)
            user.set_unusable_password()
            user.save()
            if project := self.cleaned_data["project"]:
                project.admit(user, self.cleaned_data["role"])
        return user


@dataclass(frozen=True, slots=True)
class AccountChange:
    """A change of an account: button, message after it, question before it.

    `warning` is for users who change their own account, and type their name to confirm.
    """

    button: str
    done: str
    do: Callable[[Any], None]
    is_possible: Callable[[Any], bool]
    question: str = ""
    warning: str = ""


def _forget_second_factor(user: Any) -> None:
    with transaction.atomic():
        for authenticator in Authenticator.objects.filter(user=user):
            authenticator.delete()
        note(user, "second factor", "reset")


def _remove_personal_data(user: Any) -> None:
    """Replace name and e-mail of an account, and delete what only its user needs.

    Its experiments, and entries of the change log, stay.
    """
    with transaction.atomic():
        for rows in (
            *(Authenticator.objects.filter(user=user), EmailAddress.objects.filter(user=user)),
            *(SocialAccount.objects.filter(user=user), Preferences.objects.filter(user=user)),
            *(user.api_tokens.all(), user.memberships.all(), user.saved_views.all(), user.deliveries.all()),
            NoticeChoices.objects.filter(user=user),
        ):
            rows.delete()
        name = user.get_username()
        with disable_auditlog():  # the log would store the name and the e-mail that leave
            user.username, user.email, user.first_name, user.last_name = f"closed-{user.pk}", "", "", ""
            user.set_unusable_password()
            user.save()
            _replace(Event, "data", "by", name, user.username)
            _replace(Experiment, "origin", "imported_by", name, user.username)
        note(user, "personal data", "removed")


def _replace(model: type[Model], field: str, key: str, name: str, by: str) -> None:
    """Replace a name in a JSON field of all rows."""
    rows = list(model._default_manager.filter(**{f"{field}__{key}": name}))
    for row in rows:
        getattr(row, field)[key] = by
    model._default_manager.bulk_update(rows, [field], batch_size=1000)


def _locks(user: Any) -> list[str]:
    return locked([user.get_username()]).get(user.get_username(), [])


def _unlock(user: Any) -> None:
    note(user, "sign-in", f"unlocked from {plural(unlock(user.get_username()), 'address', 'addresses')}")


CHANGES: Final = {
    "close": AccountChange(
        "Close account",
        "was closed: it can no longer sign in.",
        accounts.close_account,
        lambda user: user.is_active,
        "Its sessions and tokens are refused until you reopen the account. Its experiments stay.",
        "This is your own account: you are signed out now, and only another superuser can reopen it.",
    ),
    "reopen": AccountChange(
        "Reopen account",
        "was reopened.",
        accounts.reopen_account,
        lambda user: not user.is_active,
        "Its old sessions and tokens work again. To end them, have its password changed.",
    ),
    "personal-data": AccountChange(
        "Remove personal data",
        "no longer has personal data.",
        _remove_personal_data,
        lambda user: not user.is_active and user.get_username() != f"closed-{user.pk}",
        "A number replaces its name; e-mail, password, second factor, tokens, roles and settings are deleted. Its experiments stay. "
        "This cannot be undone.",
    ),
    "unlock": AccountChange("Unlock account", "can sign in again.", _unlock, lambda user: bool(_locks(user))),
    "second-factor": AccountChange(
        "Reset second factor",
        "can sign in with the password only.",
        _forget_second_factor,
        lambda user: user.factors > 0,
        "Its authenticator app, recovery codes and keys are removed. Verify the identity of the user first.",
    ),
    "clusters": AccountChange(
        "Grant right to set up clusters",
        "can add and configure clusters.",
        accounts.permit_clusters,
        lambda user: user.is_active and not may_set_up_clusters(user),
        "Settings of clusters name commands that run on their hosts: give this right as you would give an account there.",
    ),
    "no-clusters": AccountChange(
        "Remove right to set up clusters",
        "can no longer add and configure clusters.",
        accounts.forbid_clusters,
        lambda user: not user.is_superuser and may_set_up_clusters(user),
    ),
    "superuser": AccountChange(
        "Grant superuser rights",
        "is now a superuser.",
        accounts.make_superuser,
        lambda user: user.is_active and not user.is_superuser,
        "Superusers can see and change everything in all projects, and make other superusers.",
    ),
    "no-superuser": AccountChange(
        "Remove superuser rights",
        "is no longer a superuser.",
        accounts.end_superuser,
        lambda user: user.is_superuser,
        "The user keeps the roles in projects, and loses the pages of users, changes and cluster settings.",
        "These are your own rights: only another superuser can give them back.",
    ),
}


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("link")
def people(request: HttpRequest) -> HttpResponse:
    """List accounts; on POST create one and show its link once."""
    _require_superuser(request)
    if request.method != "POST":
        return _list(request, AccountForm())
    form = AccountForm(request.POST)
    if not form.is_valid():
        return _list(request, form, status=422)
    try:
        user = form.make()
    except AccountUnchanged as error:
        form.add_error("email" if str(error) == EMAIL_TAKEN else "username", str(error))
        return _list(request, form, status=422)
    return forbid_caching(_list(request, AccountForm(), made=user, link=new_account_link(request, user)))


@require_GET
def person(request: HttpRequest, pk: int) -> HttpResponse:
    _require_superuser(request)
    return _person(request, get_object_or_404(account_rows(), pk=pk))


@require_POST
def change(request: HttpRequest, pk: int, change: str) -> HttpResponse:
    """Apply one of `CHANGES`, or show the reason for a refusal."""
    _require_superuser(request)
    user = get_object_or_404(account_rows(), pk=pk)
    is_own, name = user == request.user, user.get_username()
    if is_own and change in CHANGES and CHANGES[change].warning and request.POST.get("name", "").strip() != name:
        messages.error(request, f"Nothing changed. Type your name, {name}, to confirm.", extra_tags="bad")
        return redirect("person", pk)
    try:
        do(change, user)
    except AccountUnchanged as error:
        raise Http404(str(error)) from None
    except LastSuperuser as error:
        messages.error(request, str(error), extra_tags="bad")
    else:
        messages.success(request, f"{name} {CHANGES[change].done}", extra_tags="ok")
    return redirect("account") if is_own else redirect("person", user.pk)


@require_POST
@sensitive_variables("link")
def password_link(request: HttpRequest, pk: int) -> HttpResponse:
    """Create a link to set a password, for installations without mail."""
    _require_superuser(request)
    user = get_object_or_404(account_rows(), pk=pk)
    try:
        link = password_link_of(request, user)
    except AccountUnchanged as error:
        raise Http404(str(error)) from None
    return forbid_caching(_person(request, user, link=link))


def do(change: str, user: Any) -> None:
    """Apply one of `CHANGES` to an account. Raise AccountUnchanged, LastSuperuser."""
    if change not in CHANGES or not CHANGES[change].is_possible(user):
        raise AccountUnchanged("This change does not apply to the account.")
    CHANGES[change].do(user)


def password_link_of(request: HttpRequest, user: Any) -> str:
    """Create a link to set a password, and log it. Raise AccountUnchanged."""
    if not user.is_active:
        raise AccountUnchanged("This account is closed. Reopen it to sign in.")
    link = new_account_link(request, user)
    note(user, "password", "link made")
    return link


def new_account_link(request: HttpRequest, user: Any) -> str:
    """Return a link to set a password."""
    key = {"uidb36": user_pk_to_url_str(user), "key": default_token_generator.make_token(user)}
    return request.build_absolute_uri(reverse("account_reset_password_from_key", kwargs=key))


def forbid_caching(response: Response) -> Response:
    """Forbid browsers to store a response that is shown once."""
    response["Cache-Control"] = "private, no-store"
    return response


def _require_superuser(request: HttpRequest) -> None:
    if not request.user.is_superuser:
        raise PermissionDenied


def account_rows(within: int | None = None) -> QuerySet[Any]:
    """Return all accounts by name, with roles and counts; ``within``: of one project."""
    roles = Membership.objects.select_related("project").order_by("project__name")
    roles = roles if within is None else roles.filter(project=within)
    return (
        User._default_manager.select_related("preferences")
        .prefetch_related(Prefetch("memberships", roles))
        .annotate(factors=Count("authenticator", distinct=True), tokens=Count("api_tokens", distinct=True))
        .order_by("username")
    )


def matching(rows: QuerySet[Any], words: str) -> QuerySet[Any]:
    """Filter accounts by words of name or e-mail."""
    for word in words.split()[:MOST_WORDS]:
        rows = rows.filter(Q(username__icontains=word) | Q(email__icontains=word))
    return rows


def _list(request: HttpRequest, form: AccountForm, *, status: int = 200, **overrides: Any) -> HttpResponse:
    words, kind = query_value(request, "q"), query_value(request, "kind")
    rows = matching(account_rows(), words).filter(KINDS.get(kind, KINDS[""])[1])
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    locks = locked(user.get_username() for user in page)
    for user in page:
        user.locked = locks.get(user.get_username(), [])
    context = {"place": "projects", "page": page, "words": words, "kind": kind, "form": form, "link_days": _LINK_DAYS}
    context["kinds"] = [(name, title) for name, (title, _) in KINDS.items()]
    return render(request, "people/people.html", context | overrides, status=status)


def _projects_of_no_other_maintainer(user: Any) -> list[str]:
    maintained = Membership.objects.filter(role=Membership.Role.MAINTAINER, user__is_active=True)
    others = maintained.exclude(user=user)
    alone = maintained.filter(user=user).exclude(project__in=others.values("project"))
    return list(alone.order_by("project__name").values_list("project__name", flat=True))


def _person(request: HttpRequest, user: Any, **overrides: Any) -> HttpResponse:
    user.locked = _locks(user)
    possible = {name: change for name, change in CHANGES.items() if change.is_possible(user)}
    if "close" in possible and (alone := _projects_of_no_other_maintainer(user)):
        close = possible["close"]
        advice = f" No other user maintains {', '.join(alone)}: make another member maintainer first."
        possible["close"] = replace(close, question=close.question + advice, warning=close.warning + advice)
    context = {"place": "projects", "person": user, "changes": possible, "link_days": _LINK_DAYS}
    return render(request, "people/person.html", context | overrides)
