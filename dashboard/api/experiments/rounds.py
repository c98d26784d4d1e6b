"""Rounds of an experiment with a goal: list, pause, resume, one more."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from pydantic import ValidationError
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import schema
from dashboard.api.rest.parsers import StrictJsonParser, validated
from dashboard.api.serializers import QueuedSerializer
from dashboard.requests.idempotency import PARAMETER, idempotent_response
from experiments.models import Experiment, Round
from experiments.specification.goal import Budget
from experiments.specification.parameters import refusal
from workers import queue, rounds

_NUMBERS = {"type": "array", "items": {"type": "object", "additionalProperties": True}}


@extend_schema_field(_NUMBERS)
class _NumbersField(serializers.JSONField):
    """Estimates with their intervals."""


class RoundSerializer(serializers.ModelSerializer[Round]):
    """A round: its trials, why it was started, and the decision at its end."""

    repetitions = serializers.DictField(
        child=serializers.IntegerField(), help_text="By configuration hash; empty for round 1, which runs the design."
    )
    outcome = serializers.ChoiceField(
        choices=Round.Outcome.choices, allow_blank=True, help_text="Empty while its trials run."
    )
    phase = serializers.ChoiceField(
        choices=Round.Phase.choices, allow_blank=True, help_text="Of a search for the best settings; empty otherwise."
    )
    numbers = _NumbersField(help_text="Estimates of the decision with their intervals, in base units.")

    class Meta:
        model = Round
        fields: ClassVar = [
            *("number", "version", "seed", "queued", "repetitions", "phase", "why", "started_at"),
            *("outcome", "reason", "numbers", "decided_at"),
        ]
        read_only_fields: ClassVar = fields


class BudgetSerializer(serializers.Serializer[Any]):
    """Budget that one more round adds; limits that the experiment lacks are ignored."""

    time = serializers.CharField(required=False, max_length=60, help_text="Running time, such as 10 min.")
    trials = serializers.IntegerField(required=False, min_value=1, max_value=1_000_000)
    host_hours = serializers.FloatField(required=False, min_value=0, max_value=1e7)


class PausedSerializer(serializers.Serializer[Any]):
    """Result of a pause or its end."""

    changed = serializers.BooleanField(help_text="False if there was nothing to pause or to resume.")


class RoundActions:
    """Actions of experiments with a goal, for their view set."""

    @schema.row_action(
        "get", RoundSerializer(many=True), (404,), operation_id="experiments_rounds_list", **schema.UNFILTERED
    )
    def rounds(self: Any, request: Request, slug: str) -> Response:
        """List the rounds of a goal, first one first; empty without a goal."""
        return Response(RoundSerializer(self.get_object().rounds.all(), many=True).data)

    @schema.row_action(
        "post",
        QueuedSerializer,
        (400, 403, 404, 409, 415),
        request=BudgetSerializer,
        parameters=[PARAMETER],
        parser_classes=[StrictJsonParser],
        url_path="one-more-round",
    )
    def one_more_round(self: Any, request: Request, slug: str) -> Response:
        """Add a budget and run one more round after the last one."""
        experiment: Experiment = self._repeatable(request)
        try:
            budget = Budget.model_validate(dict(validated(BudgetSerializer, request)))
        except ValidationError as error:
            raise refusal(error) from None
        return idempotent_response(
            request,
            lambda: Response({"queued": rounds.one_more_round(experiment, budget, author=request.user)}),
        )

    @schema.row_action("post", PausedSerializer, (403, 404, 409), url_path="pause-rounds")
    def pause_rounds(self: Any, request: Request, slug: str) -> Response:
        """Pause: running trials end, no other starts, nothing is decided."""
        return Response({"changed": self._editable(request).pause_rounds()})

    @schema.row_action("post", PausedSerializer, (403, 404, 409), url_path="resume-rounds")
    def resume_rounds(self: Any, request: Request, slug: str) -> Response:
        """Resume paused rounds."""
        return Response({"changed": queue.resume_rounds(self._repeatable(request))})
