"""``/api/v1/tokens/``: the caller's own API tokens. They are made in the browser only, where their key is shown."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import schema
from dashboard.api.rest.filtering import PAGE, refuse_unknown
from experiments.models import ApiToken


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    """A token without its key; `prefix` is how the key begins."""

    project = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)

    class Meta:
        model = ApiToken
        fields: ClassVar = ["id", "name", "prefix", "scope", "project", "created_at", "expires_at", "last_used_at"]
        read_only_fields = fields


class TokenViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, mixins.DestroyModelMixin, viewsets.GenericViewSet[ApiToken]
):
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

    @extend_schema(responses={200: TokenSerializer(many=True), **schema.errors(400)})
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Own tokens, oldest first; of a caller with a token, that one."""
        refuse_unknown(request, PAGE)
        return super().list(request, *args, **kwargs)

    @extend_schema(responses={200: TokenSerializer, **schema.errors(404)})
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One of them."""
        return super().retrieve(request, *args, **kwargs)

    @extend_schema(responses={204: None, **schema.errors(404)})
    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """End a token at once."""
        return super().destroy(request, *args, **kwargs)
