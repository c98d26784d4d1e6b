"""``/api/v1/tokens/`` and ``shares/``: the caller's API tokens, and share links."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet
from django.http import QueryDict
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import schema
from dashboard.api.rest.fields import RowSerializer
from dashboard.api.rest.filtering import ListViewSet, RowsViewSet
from dashboard.api.rest.parsers import validated
from dashboard.reports.parts import pinned_in
from dashboard.requests import share_links
from dashboard.requests.lookup import requested_comparison
from experiments.access import (
    may_manage,
    may_write_reports,
    only_project,
    visible_experiments,
    visible_projects,
    visible_reports,
)
from experiments.errors import CannotCompare
from experiments.models import ApiToken, Experiment, Report, ShareLink
from experiments.models.people.share_link import DAYS


class TokenSerializer(RowSerializer[ApiToken]):
    """A token without its key; `prefix` is how the key begins."""

    project = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)

    class Meta:
        model = ApiToken
        fields: ClassVar = ["id", "name", "prefix", "scope", "project", "created_at", "expires_at", "last_used_at"]


@extend_schema_view(destroy=extend_schema(description="Revoke a token.", responses={204: None, **schema.errors(404)}))
class TokenViewSet(mixins.DestroyModelMixin, RowsViewSet[ApiToken]):
    """The caller's tokens, oldest first; a token sees and revokes only itself."""

    serializer_class = TokenSerializer
    permission_classes = (IsAuthenticated,)  # a token for reading may end itself
    queryset = ApiToken.objects.none()
    lookup_value_regex = "[0-9]{1,18}"

    def get_queryset(self) -> QuerySet[ApiToken]:
        auth: Any = self.request.auth
        user: Any = self.request.user
        tokens = ApiToken.objects.filter(user=user).select_related("project").order_by("pk")
        return tokens.filter(pk=auth.pk) if isinstance(auth, ApiToken) else tokens


class ShareLinkSerializer(RowSerializer[ShareLink]):
    """A link to `experiments`, a comparison or a report, without its key.

    Of hidden experiments it has no names: `experiments` lists the others, and `compare` is empty."""

    experiments = serializers.SlugRelatedField[Any](slug_field="slug", many=True, read_only=True)
    compare = serializers.SerializerMethodField()
    made_by = serializers.SlugRelatedField[Any](slug_field="username", read_only=True)

    class Meta:
        model = ShareLink
        fields: ClassVar = [
            *("id", "experiments", "compare", "report", "made_by", "created_at", "expires_at", "last_used_at"),
        ]

    def get_compare(self, link: ShareLink) -> str:
        return "" if getattr(link, "hides", False) else link.query


class MadeLinkSerializer(ShareLinkSerializer):
    """A new link with its URL, which is not stored."""

    address = serializers.SerializerMethodField()

    class Meta(ShareLinkSerializer.Meta):
        fields: ClassVar = [*ShareLinkSerializer.Meta.fields, "address"]

    def get_address(self, link: ShareLink) -> str:
        return str(self.context["address"])


class WantedLinkSerializer(serializers.Serializer[Any]):
    """An experiment (slug), comparison (query) or report to share."""

    experiment = serializers.CharField(required=False, max_length=100)
    compare = serializers.CharField(required=False, max_length=2000)
    report = serializers.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    days = serializers.ChoiceField(choices=DAYS, default=DAYS[0])

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if sum(name in attrs for name in ("experiment", "compare", "report")) != 1:
            raise serializers.ValidationError({"experiment": "one of this, compare and report"})
        return attrs


_DAYS: Final = {"type": "integer", "enum": list(DAYS), "default": DAYS[0]}
_TEXT: Final = {"type": "string", "pattern": r"\S"}
_WANTED: Final = {
    "description": WantedLinkSerializer.__doc__,
    "oneOf": [
        {
            "type": "object",
            "properties": {name: {**_TEXT, "maxLength": longest}, "days": _DAYS},
            "required": [name],
            "not": {"required": [other]},
        }
        for name, other, longest in (("experiment", "compare", 100), ("compare", "experiment", 2000))
    ],
}


@extend_schema_view(destroy=extend_schema(description="End a link.", responses={204: None, **schema.errors(403, 404)}))
class ShareLinkViewSet(mixins.DestroyModelMixin, ListViewSet[ShareLink]):
    """The caller's links and, for maintainers, those of their projects; newest first."""

    serializer_class = ShareLinkSerializer
    queryset = ShareLink.objects.none()
    lookup_value_regex = "[0-9]{1,18}"

    def get_queryset(self) -> QuerySet[ShareLink]:
        user: Any = self.request.user
        projects = [project.pk for project in visible_projects(user) if may_manage(user, project)]
        managed = Q(experiments__project__in=projects) | Q(report__project__in=projects)
        project = only_project(user)
        links = ShareLink.objects.filter(managed | Q(made_by=user))
        if project is not None:
            elsewhere = Experiment.objects.exclude(project=project)
            links = links.filter(Q(report=None) | Q(report__project=project))
            links = links.exclude(pk__in=ShareLink.objects.filter(experiments__in=elsewhere).values("pk"))
        visible = visible_experiments(user)
        hidden = ShareLink.experiments.through.objects.filter(sharelink=OuterRef("pk")).exclude(experiment__in=visible)
        links = links.annotate(hides=Exists(hidden)).prefetch_related(Prefetch("experiments", visible))
        return links.select_related("made_by").distinct().order_by("-pk")

    @extend_schema(
        request={"application/json": _WANTED}, responses={201: MadeLinkSerializer, **schema.errors(400, 403, 415)}
    )
    def create(self, request: Request) -> Response:
        """Create a link; only this answer has its URL."""
        values = validated(WantedLinkSerializer, request)
        query = QueryDict(values.get("compare", "")).urlencode()
        report = _report(request.user, values["report"]) if "report" in values else None
        if report is not None:
            shared = [
                experiment
                for experiment in pinned_in(report, request.user)
                if share_links.may_share_here(request.user, experiment)
            ]
        else:
            shared = _compared(request.user, QueryDict(query)) if query else _experiment(request.user, values)
        share_links.require_may_share(request.user, shared)
        link, address = share_links.issue(request._request, shared, days=values["days"], query=query, report=report)
        context = {**self.get_serializer_context(), "address": address}
        return Response(
            MadeLinkSerializer(link, context=context).data, status=201, headers={"Cache-Control": "no-store"}
        )


def _experiment(user: Any, values: dict[str, Any]) -> list[Experiment]:
    seen = visible_experiments(user, Experiment.objects.select_related("project"))
    experiment = seen.filter(slug=values.get("experiment", "")).first()
    if experiment is None:
        raise ValidationError({"experiment": "there is no such experiment"})
    return [experiment]


def _report(user: Any, number: int) -> Report:
    report = visible_reports(user).select_related("project").filter(pk=number).first()
    if report is None:
        raise ValidationError({"report": "there is no such report"})
    if not may_write_reports(user, report.project):
        raise PermissionDenied("Submitters and maintainers of the project may share this.")
    return report


def _compared(user: Any, params: QueryDict) -> list[Experiment]:
    try:
        return share_links.experiments_of(requested_comparison(user, params))
    except CannotCompare as error:
        raise ValidationError({"compare": str(error)}) from None
