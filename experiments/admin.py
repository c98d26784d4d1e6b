"""Django's admin: edits users, projects, clusters and tokens; shows measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from experiments.access import visible_clusters
from experiments.models import ApiToken, Cluster, Experiment, Lease, Membership, Project, Trial

if TYPE_CHECKING:  # the classes take parameters in their stubs only
    ModelAdmin = admin.ModelAdmin[Any]
    MembershipRows = admin.TabularInline[Membership, Project]
else:
    ModelAdmin, MembershipRows = admin.ModelAdmin, admin.TabularInline


class ReadOnlyAdmin(ModelAdmin):
    """Rows that only named methods change: an edit bypasses the state machine."""

    view_on_site = False

    def _refuse(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_add_permission = has_change_permission = has_delete_permission = _refuse


class MembershipInline(MembershipRows):
    model = Membership
    extra = 0
    autocomplete_fields: ClassVar = ["user"]


@admin.register(Project)
class ProjectAdmin(ModelAdmin):
    list_display = ("name", "slug", "created_at")
    prepopulated_fields: ClassVar = {"slug": ["name"]}
    inlines: ClassVar = [MembershipInline]


@admin.register(Cluster)
class ClusterAdmin(ModelAdmin):
    list_display = ("name", "slug", "kind", "enabled")
    list_filter = ("kind", "enabled")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Cluster]:
        return visible_clusters(request.user)


@admin.register(ApiToken)
class ApiTokenAdmin(ModelAdmin):
    """Tokens can be revoked here, but neither created nor read."""

    list_display = ("name", "user", "scope", "project", "prefix", "created_at", "expires_at", "last_used_at")
    list_select_related = ("user", "project")
    fields = list_display
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


@admin.register(Experiment)
class ExperimentAdmin(ReadOnlyAdmin):
    list_display = ("name", "slug", "workload", "project", "owner", "published", "created_at")
    list_filter = ("published", "workload", "project")
    list_select_related = ("project", "owner")
    search_fields = ("name", "slug")


@admin.register(Trial)
class TrialAdmin(ReadOnlyAdmin):
    list_display = ("pk", "experiment", "state", "kind", "repetition", "attempt", "worker", "ended_at")
    list_filter = ("state", "kind")
    list_select_related = ("experiment",)
    search_fields = ("experiment__slug",)


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin):
    list_display = ("resource", "trial", "acquired_at")
