"""Permissions to see, submit and change.

- All signed-in users see published results.
- Members see their project's experiments. Submitters add experiments and cancel their own.
- Maintainers cancel any experiment of their project, submit workloads and transports that name programs, and state facts of
  clusters.
- Superusers, and staff with Django's permissions for clusters, set up clusters.
- Superusers may do everything in every project.
- Members read their project's reports; submitters and maintainers write them; owners and maintainers delete them.
- Events of an experiment or report are visible to the users who see it. Maintainers set up webhooks.
- All signed-in users see the clusters of this installation; those of imports are visible with their experiments.
- A share link opens its experiments or its report.
- An API token (``user.token``) limits its user to its scope and its project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, Q, QuerySet

from experiments import workloads
from experiments.library import PUBLISHED_PROJECT
from experiments.models import (
    ApiToken,
    Cluster,
    Deleted,
    Event,
    Experiment,
    Membership,
    Program,
    Project,
    Report,
    Trial,
)
from experiments.models.people.accounts import CLUSTER_RIGHTS
from experiments.models.people.project import DEFAULT_PROJECT
from experiments.specification.design import launch_of
from experiments.specification.parameters import is_of_launch
from experiments.specification.transport import as_swept, is_harmless

Role = Membership.Role


class Visitor(AnonymousUser):
    """Visitor with a share link: sees the experiments of these keys (in this report).

    Counts as signed in only while `VisitorMiddleware` sets it, to read the pages of those experiments.
    """

    is_visitor = True

    def __init__(self, shared: frozenset[int], report: int | None = None) -> None:
        self.shared, self.shared_report = shared, report

    @property
    def is_authenticated(self) -> bool:  # type: ignore[override]
        return True


def with_share_link(user: Any, shared: frozenset[int], report: int | None = None) -> None:
    """Let a signed-in user see these experiments (and this report) for this request."""
    user.shared, user.shared_report = shared, report


def _is_visitor(user: Any) -> bool:
    return isinstance(user, Visitor)


def with_token(user: Any, token: ApiToken) -> Any:
    """Return ``user`` limited to the scope of ``token`` for this request."""
    user.token = token
    return user


def only_project(user: Any) -> int | None:
    """Return the key of the project that the user's token is limited to, or None."""
    token = _token(user)
    return None if token is None else token.project_id


def default_slug(user: Any) -> str:
    """Return the project of a request that names none: the token's, or the default."""
    token = _token(user)
    return token.project.slug if token is not None and token.project is not None else DEFAULT_PROJECT


def limited_to(user: Any, project: int | None) -> Any:
    """Return ``user`` limited to one project (None: all), for work after the request."""
    return (
        user
        if project is None
        else with_token(user, ApiToken(user=user, scope=ApiToken.Scope.MAINTAIN, project_id=project))
    )


def _token(user: Any) -> ApiToken | None:
    return getattr(user, "token", None)


def sees_everything(user: Any) -> bool:
    """Return whether ``user`` is a superuser without a token limited to a project."""
    token = _token(user)
    return bool(user.is_superuser) and (token is None or token.project_id is None)


def _is_held_back(user: Any) -> bool:
    """Return whether a visitor or a limited token is kept from global actions."""
    token = _token(user)
    return _is_visitor(user) or (
        token is not None and (token.project_id is not None or token.most_role != Role.MAINTAINER)
    )


def visible_projects(user: Any) -> QuerySet[Project]:
    """Return the projects of ``user``; all projects for a superuser."""
    if _is_visitor(user):
        return Project.objects.none()
    projects = Project.objects.all() if user.is_superuser else Project.objects.filter(memberships__user=user)
    token = _token(user)
    return projects if token is None or token.project_id is None else projects.filter(pk=token.project_id)


def visible_experiments(
    user: Any, among: QuerySet[Experiment] | None = None, *, by_keys: bool = False
) -> QuerySet[Experiment]:
    """Return the experiments that ``user`` may see.

    ``by_keys`` reads the keys of the projects first: PostgreSQL estimates rows badly with a subquery.
    """
    experiments = Experiment.objects.all() if among is None else among
    allowed = Q(published=True) | Q(project__in=_projects(user, by_keys=by_keys))
    return _visible(user, experiments, Q(pk__in=getattr(user, "shared", ())), allowed)


def _projects(user: Any, *, by_keys: bool) -> Any:
    projects = visible_projects(user)  # a subquery: a join to the members would repeat rows
    return list(projects.values_list("pk", flat=True)) if by_keys and not sees_everything(user) else projects


def _visible(user: Any, rows: QuerySet[Any], shared: Q, allowed: Q) -> QuerySet[Any]:
    if sees_everything(user):
        return rows
    return rows.filter(shared if _is_visitor(user) else allowed | shared)


def visible_trials(user: Any, among: QuerySet[Trial] | None = None, *, by_keys: bool = False) -> QuerySet[Trial]:
    """Return the trials of experiments that ``user`` may see; ``by_keys`` as above."""
    trials = Trial.objects.all() if among is None else among
    projects = _projects(user, by_keys=by_keys)
    allowed = Q(experiment__published=True) | Q(experiment__project__in=projects)
    return _visible(user, trials, Q(experiment__in=getattr(user, "shared", ())), allowed)


def visible_clusters(user: Any) -> QuerySet[Cluster]:
    """Return the clusters of this installation, and those of visible imported trials."""
    clusters = Cluster.objects.all()
    if sees_everything(user):
        return clusters
    of_experiments = visible_experiments(user).filter(cluster=OuterRef("pk"))
    of_trials = visible_trials(user).filter(cluster=OuterRef("pk"))
    return clusters.filter(Q(elsewhere=False) | Exists(of_experiments) | Exists(of_trials))


def visible_reports(user: Any) -> QuerySet[Report]:
    """Return the reports that ``user`` may read."""
    shared = Q(pk=getattr(user, "shared_report", None))
    return _visible(user, Report.objects.all(), shared, Q(project__in=visible_projects(user)))


def visible_events(user: Any, among: QuerySet[Event] | None = None) -> QuerySet[Event]:
    """Return the recent events of experiments and reports that ``user`` may see."""
    events = Event.objects.within_retention() if among is None else among
    if sees_everything(user):
        return events
    return events.filter(Q(experiment__in=visible_experiments(user)) | Q(report__in=visible_reports(user)))


def may_write_reports(user: Any, project: Project) -> bool:
    """Return whether ``user`` may write reports of a project (submitter, maintainer)."""
    return project.slug != PUBLISHED_PROJECT and role_in(user, project) in (Role.SUBMITTER, Role.MAINTAINER)


def may_delete_report(user: Any, report: Report) -> bool:
    """Return whether ``user`` may delete a report (its submitter, maintainer)."""
    return _owns(user, report)


def report_projects(user: Any) -> list[Project]:
    """Return the projects in which ``user`` may write reports, default first."""
    return [project for project in _own_projects(user) if may_write_reports(user, project)]


def _own_projects(user: Any) -> list[Project]:
    projects = visible_projects(user).exclude(slug=PUBLISHED_PROJECT)
    return sorted(projects, key=lambda project: (project.slug != DEFAULT_PROJECT, project.slug))


def role_in(user: Any, project: Project) -> str | None:
    """Return the role of ``user`` in a project, or None; superusers are maintainers."""
    token = _token(user)
    if _is_visitor(user) or (token is not None and token.project_id not in (None, project.pk)):
        return None
    role: str | None
    if user.is_superuser:
        role = Role.MAINTAINER
    elif (read := getattr(project, "role_of_user", None)) is not None and read[0] == user.pk:
        role = read[1]
    else:
        role = project.memberships.filter(user=user).values_list("role", flat=True).first()
    return role if role is None or token is None else min(role, token.most_role, key=Role.values.index)


def read_roles(user: Any, projects: Iterable[Project]) -> None:
    """Read the roles of ``user`` in these projects by one query, for ``role_in``."""
    rows = list(projects)
    roles: dict[int, str] = {}
    if user.pk is not None:
        of_user = Membership.objects.filter(user=user.pk, project__in={row.pk for row in rows})
        roles = dict(of_user.values_list("project", "role"))
    for row in rows:
        row.role_of_user = (user.pk, roles.get(row.pk))  # type: ignore[attr-defined]


def may_submit(user: Any, project: Project, specification: Mapping[str, Any] | None = None) -> bool:
    """Return whether ``user`` may add an experiment (of this specification, if given)."""
    role = role_in(user, project)
    restricted = specification is not None and restricted_field(specification) is not None
    return role == Role.MAINTAINER or (role == Role.SUBMITTER and not restricted)


def restricted_field(specification: Mapping[str, Any]) -> Literal["workload", "transport"] | None:
    """Return the field that chooses what is executed; None if submitters may start it.

    ``specification`` is valid.
    """
    workload, constants = specification["workload"], specification.get("parameters") or {}
    definition = workloads.find(workload, constants)
    if definition is not None and definition.restricted:
        return "workload"
    chosen = [specification.get("transport")]
    if is_of_launch(workload, "transport", constants):
        swept = specification.get("sweep") or {}
        chosen += as_swept(swept.get("transport", []))
    return None if all(map(is_harmless, chosen)) else "transport"


def may_submit_somewhere(user: Any) -> bool:
    """Return whether ``user`` may add an experiment to any project; cheap to check."""
    roles = (Role.SUBMITTER, Role.MAINTAINER)
    memberships = Membership.objects.filter(user=user, role__in=roles).exclude(project__slug=PUBLISHED_PROJECT)
    return bool(user.is_superuser) or memberships.exists()


def may_see_people(user: Any) -> bool:
    """Return whether ``user`` may list accounts: superusers with an unlimited token."""
    return bool(user.is_superuser) and not _is_held_back(user)


def may_manage(user: Any, project: Project) -> bool:
    """Return whether ``user`` may manage roles, invitations and the change log."""
    return project.slug != PUBLISHED_PROJECT and role_in(user, project) == Role.MAINTAINER


def may_move(user: Any, experiment: Experiment) -> bool:
    """Return whether ``user`` may move an experiment out of its project."""
    return not experiment.published and _may_change(user, experiment)


def may_share(user: Any, experiment: Experiment) -> bool:
    """Return whether ``user`` may create share links; all users for published results."""
    return experiment.published or role_in(user, experiment.project) in (Role.SUBMITTER, Role.MAINTAINER)


def projects_for(user: Any, specification: Mapping[str, Any] | None = None) -> list[Project]:
    """Return the projects that accept this specification from ``user``, default first."""
    return [project for project in _own_projects(user) if may_submit(user, project, specification)]


def may_run_more(user: Any, experiment: Experiment, role: str | None = None) -> bool:
    """Return whether ``user`` may queue further trials of an experiment.

    The user needs the right to change it and to start its specification today: a former maintainer may not repeat a command that only
    maintainers start. Imported experiments run no more. ``role`` is the user's role, if known.
    """
    return not experiment.is_imported and _may_change(user, experiment, role)


def may_run_again(user: Any, trial: Trial) -> bool:
    """Return whether ``user`` may queue another attempt of a trial.

    Its configuration may be of an earlier version of the experiment, whose transport only maintainers start.
    """
    experiment = trial.experiment
    launch = launch_of(experiment.workload, trial.configuration.parameters)
    allowed = is_harmless(launch.get("transport")) or role_in(user, experiment.project) == Role.MAINTAINER
    return allowed and may_run_more(user, experiment)


def _may_change(user: Any, experiment: Experiment, role: str | None = None) -> bool:
    role = role_in(user, experiment.project) if role is None else role
    is_own = role == Role.SUBMITTER and experiment.owner_id == user.pk
    return role == Role.MAINTAINER or (is_own and restricted_field(experiment.specification) is None)


def may_describe_clusters(user: Any) -> bool:
    """Return whether ``user`` may state facts of clusters: maintainers of any project."""
    if _is_held_back(user):
        return False
    return bool(user.is_superuser) or Membership.objects.filter(user=user, role=Role.MAINTAINER).exists()


def may_set_up_clusters(user: Any) -> bool:
    """Return whether ``user`` may add and configure clusters.

    Settings name commands that workers and hosts run: superusers and permitted staff.
    """
    permissions = [f"experiments.{name}" for name in CLUSTER_RIGHTS]
    if _is_held_back(user):
        return False
    return bool(user.is_superuser or (user.is_staff and user.has_perms(permissions)))


def may_test_clusters(user: Any) -> bool:
    """Return whether ``user`` may check a cluster, which takes its hosts for a minute."""
    return may_set_up_clusters(user) or may_describe_clusters(user)


def may_see_server(user: Any) -> bool:
    """Return whether ``user`` may see processes and disks: maintainers of any project."""
    return may_describe_clusters(user)


def may_register_programs(user: Any) -> bool:
    """Return whether ``user`` may register programs: maintainers of any project."""
    return may_describe_clusters(user)


def may_replace_program(user: Any, name: str) -> bool:
    """Return whether ``user`` may register a new version of a program.

    All projects run it, and its parsing changes stored trials: its first author, or a maintainer of every project that uses it.
    """
    first = Program.objects.filter(slug=name).order_by("version").first()
    if first is None or user.is_superuser or first.author_id == user.pk:
        return True
    maintained = Membership.objects.filter(user=user, role=Role.MAINTAINER).values("project")
    used = (kind.objects.filter(workload=name).exclude(project__in=maintained) for kind in (Experiment, Deleted))
    return not any(experiments.exists() for experiments in used)


def may_predict(user: Any, experiment: Experiment) -> bool:
    """Return whether ``user`` may store a prediction (submitter, maintainer)."""
    runs_here = not experiment.published and not experiment.is_imported
    return runs_here and role_in(user, experiment.project) in (Role.SUBMITTER, Role.MAINTAINER)


def may_cancel(user: Any, experiment: Experiment, role: str | None = None) -> bool:
    """Return whether ``user`` may cancel, archive, tag and delete an experiment.

    Maintainers, and its owner as a submitter. ``role`` is the user's role, if known.
    """
    return _owns(user, experiment, role)


def _owns(user: Any, thing: Experiment | Deleted | Report, role: str | None = None) -> bool:
    role = role_in(user, thing.project) if role is None else role
    return role == Role.MAINTAINER or (role == Role.SUBMITTER and thing.owner_id == user.pk)


def may_restore(user: Any, deleted: Deleted) -> bool:
    """Return whether ``user`` may restore a deleted experiment."""
    return _owns(user, deleted)


def may_remove(user: Any, deleted: Deleted, role: str | None = None) -> bool:
    """Return whether ``user`` may remove a deleted experiment for good: maintainers.

    ``role`` is the user's role, if known.
    """
    return (role_in(user, deleted.project) if role is None else role) == Role.MAINTAINER


def visible_deleted(user: Any) -> dict[Deleted, str]:
    """Return the deleted experiments that ``user`` may restore -> role, newest first."""
    deleted = Deleted.objects.select_related("project", "owner", "by").filter(project__in=visible_projects(user))
    read_roles(user, (row.project for row in deleted))
    return {row: role for row in deleted if _owns(user, row, role := role_in(user, row.project) or "")}


def may_prioritise(user: Any, experiment: Experiment) -> bool:
    """Return whether ``user`` may change an experiment's priority: maintainers."""
    return role_in(user, experiment.project) == Role.MAINTAINER
