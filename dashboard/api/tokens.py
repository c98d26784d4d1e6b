"""``/api/v1/tokens/``: the caller's own API tokens. They are made in the browser only, where their key is shown."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers
from rest_framework.permissions import IsAuthenticated

from dashboard.api.rest import schema
from dashboard.api.rest.fields import RowSerializer
from dashboard.api.rest.view_sets import RowsViewSet
from experiments.models import ApiToken


class TokenSerializer(RowSerializer[ApiToken]):
    """A token without its key; `prefix` is how the key begins."""

    project = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)

    class Meta:
        model = ApiToken
        fields: ClassVar = ["id", "name", "prefix", "scope", "project", "created_at", "expires_at", "last_used_at"]


@extend_schema_view(
    destroy=extend_schema(description="End a token at once.", responses={204: None, **schema.errors(404)})
)
class TokenViewSet(mixins.DestroyModelMixin, RowsViewSet[ApiToken]):
    """All tokens of who is signed in with a browser; whoever calls with a token sees and ends that one alone."""

    serializer_class = TokenSerializer
    permission_classes = (IsAuthenticated,)  # a token for reading may end itself
    queryset = ApiToken.objects.none()
    lookup_value_regex = "[0-9]{1,18}"

    def get_queryset(self) -> QuerySet[ApiToken]:
        auth: Any = self.request.auth
        user: Any = self.request.user
        tokens = ApiToken.objects.filter(user=user).select_related("project").order_by("pk")
        return tokens.filter(pk=auth.pk) if isinstance(auth, ApiToken) else tokens
