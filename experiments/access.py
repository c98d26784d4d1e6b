"""Who may see, submit and cancel.

- Everybody who is signed in sees published results.
- A project's experiments are seen by its members; submitters add experiments and cancel their own; maintainers cancel
  any of them, may submit workloads that say themselves what is executed, and state the facts of clusters.
- Clusters are set up by superusers and by staff with Django's permissions to add and change them.
- Superusers may do everything in every project.
- A project's reports are read by its members and written by submitters and maintainers; their owner and maintainers delete them.
- What happened to an experiment or a report is told to who may see that. Maintainers set up the webhooks of their project.
- Whoever came by a share link sees the experiments or the report that it opens.
- Whoever calls with an API token (``user.token``) may do no more than its scope says, in no other project than its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from experiments import workloads
from experiments.library import PUBLISHED_PROJECT
from experiments.models import ApiToken, Deleted, Event, Experiment, Membership, Program, Project, Report, Trial
from experiments.models.people.project import DEFAULT_PROJECT

Role = Membership.Role


class Visitor(AnonymousUser):
    """Who has no account and came by a share link: sees the experiments of these numbers (in this report), and nothing
    that is published besides.

    Counts as signed in where this is set, which `VisitorMiddleware` does for reading the pages of those experiments alone.
    """

    is_visitor = True

    def __init__(self, shared: frozenset[int], report: int | None = None) -> None:
        self.shared, self.shared_report = shared, report

    @property
    def is_authenticated(self) -> bool:  # type: ignore[override]
        return True


def lend(user: Any, shared: frozenset[int], report: int | None = None) -> None:
    """Let ``user``, who is signed in, see these experiments (and this report) too for the rest of the request."""
    user.shared, user.shared_report = shared, report


def _is_visitor(user: Any) -> bool:
    return isinstance(user, Visitor)


def bear(user: Any, token: ApiToken) -> Any:
    """Return ``user`` limited to what ``token`` allows, for the rest of the request."""
    user.token = token
    return user


def only_project(user: Any) -> int | None:
    """Return the key of the project that the token of ``user`` is limited to; None where there is no such limit."""
    token = _token(user)
    return None if token is None else token.project_id


def limited_to(user: Any, project: int | None) -> Any:
    """Return ``user`` as one whose token is for this project alone (None: for all), for work that goes on after the request."""
    return (
        user if project is None else bear(user, ApiToken(user=user, scope=ApiToken.Scope.MAINTAIN, project_id=project))
    )


def _token(user: Any) -> ApiToken | None:
    return getattr(user, "token", None)


def sees_everything(user: Any) -> bool:
    """Return whether ``user`` is a superuser who calls without a token, or with one for all projects."""
    token = _token(user)
    return bool(user.is_superuser) and (token is None or token.project_id is None)


def _is_held_back(user: Any) -> bool:
    """Return whether a token keeps ``user`` from what concerns all projects, as it is kept from visitors."""
    token = _token(user)
    return _is_visitor(user) or (
        token is not None and (token.project_id is not None or token.most_role != Role.MAINTAINER)
    )


def visible_projects(user: Any) -> QuerySet[Project]:
    """Return the projects that ``user`` is a member of; all of them for a superuser."""
    if _is_visitor(user):
        return Project.objects.none()
    projects = Project.objects.all() if user.is_superuser else Project.objects.filter(memberships__user=user)
    token = _token(user)
    return projects if token is None or token.project_id is None else projects.filter(pk=token.project_id)


def visible_experiments(
    user: Any, among: QuerySet[Experiment] | None = None, *, by_keys: bool = False
) -> QuerySet[Experiment]:
    """Return the experiments that ``user`` may see.

    ``by_keys`` asks for the projects at once: with their keys PostgreSQL knows how many rows follow, of a subquery it guesses half.
    """
    experiments = Experiment.objects.all() if among is None else among
    projects: Any = visible_projects(user)  # a subquery: a join to the members would repeat rows
    if by_keys and not sees_everything(user):
        projects = list(projects.values_list("pk", flat=True))
    own = Q(published=True) | Q(project__in=projects)
    return _visible(user, experiments, Q(pk__in=getattr(user, "shared", ())), own)


def _visible(user: Any, rows: QuerySet[Any], shared: Q, own: Q) -> QuerySet[Any]:
    if sees_everything(user):
        return rows
    return rows.filter(shared if _is_visitor(user) else own | shared)


def visible_trials(user: Any, among: QuerySet[Trial] | None = None) -> QuerySet[Trial]:
    """Return the trials of the experiments that ``user`` may see."""
    trials = Trial.objects.all() if among is None else among
    own = Q(experiment__published=True) | Q(experiment__project__in=visible_projects(user))
    return _visible(user, trials, Q(experiment__in=getattr(user, "shared", ())), own)


def visible_reports(user: Any) -> QuerySet[Report]:
    """Return the reports that ``user`` may read."""
    shared = Q(pk=getattr(user, "shared_report", None))
    return _visible(user, Report.objects.all(), shared, Q(project__in=visible_projects(user)))


def visible_events(user: Any, among: QuerySet[Event] | None = None) -> QuerySet[Event]:
    """Return what happened of late to the experiments and reports that ``user`` may see."""
    events = Event.objects.kept() if among is None else among
    if sees_everything(user):
        return events
    return events.filter(Q(experiment__in=visible_experiments(user)) | Q(report__in=visible_reports(user)))


def may_write_reports(user: Any, project: Project) -> bool:
    """Return whether ``user`` may write reports of a project: its submitters and maintainers."""
    return project.slug != PUBLISHED_PROJECT and role_in(user, project) in (Role.SUBMITTER, Role.MAINTAINER)


def may_delete_report(user: Any, report: Report) -> bool:
    """Return whether ``user`` may delete a report: maintainers, and the submitter whose it is."""
    return _owns(user, report)


def report_projects(user: Any) -> list[Project]:
    """Return the projects that ``user`` may write reports in, the default one first."""
    return [project for project in _own_projects(user) if may_write_reports(user, project)]


def _own_projects(user: Any) -> list[Project]:
    projects = visible_projects(user).exclude(slug=PUBLISHED_PROJECT)
    return sorted(projects, key=lambda project: (project.slug != DEFAULT_PROJECT, project.slug))


def role_in(user: Any, project: Project) -> str | None:
    """Return the role of ``user`` in a project; superusers are maintainers everywhere, others may have none."""
    token = _token(user)
    if _is_visitor(user) or (token is not None and token.project_id not in (None, project.pk)):
        return None
    if user.is_superuser:
        role: str | None = Role.MAINTAINER
    else:
        role = project.memberships.filter(user=user).values_list("role", flat=True).first()
    return role if role is None or token is None else min(role, token.most_role, key=Role.values.index)


def may_submit(
    user: Any, project: Project, workload: str | None = None, parameters: Mapping[str, Any] | None = None
) -> bool:
    """Return whether ``user`` may add an experiment, and (when it is known) one of this workload with these constants."""
    role = role_in(user, project)
    restricted = workload is not None and _is_restricted(workload, parameters)
    return role == Role.MAINTAINER or (role == Role.SUBMITTER and not restricted)


def _is_restricted(workload: str, parameters: Mapping[str, Any] | None) -> bool:
    known = workloads.find(workload, parameters)
    return known is not None and known.restricted


def may_submit_somewhere(user: Any) -> bool:
    """Return whether ``user`` may add an experiment to any project: asked before anything that was sent is read."""
    roles = (Role.SUBMITTER, Role.MAINTAINER)
    own = Membership.objects.filter(user=user, role__in=roles).exclude(project__slug=PUBLISHED_PROJECT)
    return bool(user.is_superuser) or own.exists()


def may_see_people(user: Any) -> bool:
    """Return whether ``user`` sees who has an account: superusers, with a token that is held back in nothing."""
    return bool(user.is_superuser) and not _is_held_back(user)


def may_manage(user: Any, project: Project) -> bool:
    """Return whether ``user`` may give and take roles in a project, invite people to it and see who changed what."""
    return project.slug != PUBLISHED_PROJECT and role_in(user, project) == Role.MAINTAINER


def may_move(user: Any, experiment: Experiment) -> bool:
    """Return whether ``user`` may take an experiment out of its project: who may change it today."""
    return not experiment.published and _may_change(user, experiment)


def may_share(user: Any, experiment: Experiment) -> bool:
    """Return whether ``user`` may let others read an experiment by a link: submitters and maintainers; anybody what is published."""
    return experiment.published or role_in(user, experiment.project) in (Role.SUBMITTER, Role.MAINTAINER)


def projects_for(user: Any, workload: str | None = None, parameters: Mapping[str, Any] | None = None) -> list[Project]:
    """Return the projects that ``user`` may start this workload (None: any) with these constants in, the default one first."""
    return [project for project in _own_projects(user) if may_submit(user, project, workload, parameters)]


def may_run_more(user: Any, experiment: Experiment, role: str | None = None) -> bool:
    """Return whether ``user`` may have trials of an experiment run again or more of them: who may change it, and may today start
    its workload. Whoever once was a maintainer may not repeat a command that only maintainers start; of what was imported nobody
    runs more. ``role`` is theirs where it is known already.
    """
    return not experiment.is_imported and _may_change(user, experiment, role)


def _may_change(user: Any, experiment: Experiment, role: str | None = None) -> bool:
    role = role or role_in(user, experiment.project)
    is_own = role == Role.SUBMITTER and experiment.owner_id == user.pk
    constants = experiment.specification.get("parameters")
    return role == Role.MAINTAINER or (is_own and not _is_restricted(experiment.workload, constants))


def may_describe_clusters(user: Any) -> bool:
    """Return whether ``user`` may state facts of clusters, which all projects share: maintainers of any project."""
    if _is_held_back(user):
        return False
    return bool(user.is_superuser) or Membership.objects.filter(user=user, role=Role.MAINTAINER).exists()


def may_set_up_clusters(user: Any) -> bool:
    """Return whether ``user`` may add clusters and change their settings, which name commands that the worker and the hosts
    run: superusers, and staff whom the administration permits it.
    """
    asked = ["experiments.add_cluster", "experiments.change_cluster"]
    if _is_held_back(user):
        return False
    return bool(user.is_superuser or (user.is_staff and user.has_perms(asked)))


def may_test_clusters(user: Any) -> bool:
    """Return whether ``user`` may have a cluster tested: it takes the hosts for a minute, as a trial does."""
    return may_set_up_clusters(user) or may_describe_clusters(user)


def may_register_programs(user: Any) -> bool:
    """Return whether ``user`` may say what submitters of all projects then run: maintainers of any project."""
    return may_describe_clusters(user)


def may_replace_program(user: Any, name: str) -> bool:
    """Return whether ``user``, who may register programs, may register this one: its next version is what all projects run, and how
    its output is read changes what their kept trials say. Who registered it first, and who maintains every project that has
    experiments of it.
    """
    first = Program.objects.filter(slug=name).order_by("version").first()
    if first is None or user.is_superuser or first.author_id == user.pk:
        return True
    maintained = Membership.objects.filter(user=user, role=Role.MAINTAINER).values("project")
    return not Experiment.objects.filter(workload=name).exclude(project__in=maintained).exists()


def may_predict(user: Any, experiment: Experiment) -> bool:
    """Return whether ``user`` may keep a prediction of an experiment: submitters and maintainers of its project, where its trials
    can be run here.
    """
    own = not experiment.published and not experiment.is_imported
    return own and role_in(user, experiment.project) in (Role.SUBMITTER, Role.MAINTAINER)


def may_cancel(user: Any, experiment: Experiment, role: str | None = None) -> bool:
    """Return whether ``user`` may cancel trials of an experiment, archive, tag and delete it: maintainers, and the submitter whose it
    is. ``role`` is theirs where it is known already.
    """
    return _owns(user, experiment, role)


def _owns(user: Any, thing: Experiment | Deleted | Report, role: str | None = None) -> bool:
    role = role or role_in(user, thing.project)
    return role == Role.MAINTAINER or (role == Role.SUBMITTER and thing.owner_id == user.pk)


def may_bring_back(user: Any, kept: Deleted) -> bool:
    """Return whether ``user`` may bring a deleted experiment back: who may delete it, maintainers and the submitter whose it was."""
    return _owns(user, kept)


def visible_deleted(user: Any) -> list[Deleted]:
    """Return the deleted experiments that ``user`` may bring back, the last one first."""
    deleted = Deleted.objects.select_related("project", "owner", "by").filter(project__in=visible_projects(user))
    return [kept for kept in deleted if may_bring_back(user, kept)]


def may_prioritise(user: Any, experiment: Experiment) -> bool:
    """Return whether ``user`` may say that an experiment starts before or after others of its project: its maintainers."""
    return role_in(user, experiment.project) == Role.MAINTAINER
