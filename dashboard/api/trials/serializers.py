"""Serializers of a trial's curves, distributions, connections and matrices."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from experiments.models import Measurement

OF: Final = ("traffic", "hosts")
_NUMBERS: Final = {"type": "array", "items": {"type": ["number", "null"]}}
_NAMED: Final = {**dict.fromkeys(("host_a", "host_b", "handshake", "closing"), "string"), "aborted": "boolean"}
_COUNTED: Final = ("connection", "port_a", "port_b", "packets", "wire_bytes", "payload_bytes", "goodput_bytes")
_NOT_ALWAYS: Final = ("rank_a", "rank_b", "start_ns")


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            **{name: {"type": kind} for name, kind in _NAMED.items()},
            **{name: {"type": "integer"} for name in _COUNTED},
            **{name: {"type": ["integer", "null"]} for name in _NOT_ALWAYS},
        },
        "required": [*_NAMED, *_COUNTED],
        "additionalProperties": {"type": ["number", "string", "boolean", "null"]},
    }
)
class ConnectionField(serializers.DictField):
    """One connection: named columns, and further numbers."""


@extend_schema_field({"type": "array", "items": _NUMBERS})
class MatrixField(serializers.ListField):
    """Rows of numbers."""


class PartSerializer(serializers.Serializer[Any]):
    """Fields of all parts."""

    missing = serializers.CharField(allow_null=True, help_text="Why there is no data; null if there is.")
    units = serializers.DictField(child=serializers.CharField(), help_text="By name; other values are counts or words.")


class CurveSerializer(serializers.Serializer[Any]):
    """One quantity over time; for hosts with minimum and maximum of each step."""

    quantity = serializers.CharField()
    host = serializers.CharField(allow_null=True, help_text="Null: of the whole capture.")
    values = serializers.ListField(child=serializers.FloatField(allow_null=True))
    low = serializers.ListField(child=serializers.FloatField(allow_null=True), allow_null=True)
    high = serializers.ListField(child=serializers.FloatField(allow_null=True), allow_null=True)


class SeriesSerializer(PartSerializer):
    """Curves over time, all over the same steps."""

    of = serializers.ChoiceField(choices=OF)
    scope = serializers.ChoiceField(choices=Measurement.Scope.choices)
    start_s = serializers.FloatField(
        allow_null=True, help_text="Begin of the first bin, seconds since 1970; null of hosts."
    )
    step_s = serializers.FloatField(allow_null=True, help_text="Length of a step; null if samples have no fixed step.")
    t_s = serializers.ListField(
        child=serializers.FloatField(),
        allow_null=True,
        help_text="Ends of the steps since the first sample; null of traffic.",
    )
    count = serializers.IntegerField(help_text="Number of hosts; for traffic 1, the capture.")
    next = serializers.CharField(allow_null=True, help_text="Address of further hosts.")
    series = CurveSerializer(many=True)


class FitSerializer(serializers.Serializer[Any]):
    """A distribution that was fitted to the gaps, the likeliest first."""

    distribution = serializers.CharField()
    parameters = serializers.DictField(child=serializers.FloatField())
    log_likelihood = serializers.FloatField()
    aic = serializers.FloatField()
    d_aic = serializers.FloatField(help_text="Above the AIC of the likeliest.")
    ks_distance = serializers.FloatField(help_text="Kolmogorov-Smirnov, as size of the misfit.")


class SizesSerializer(serializers.Serializer[Any]):
    """Packets by their length on the wire."""

    size_bytes = serializers.ListField(child=serializers.IntegerField())
    packets = serializers.ListField(child=serializers.IntegerField())


class GapsSerializer(serializers.Serializer[Any]):
    """Inter-arrival times: complementary distribution, index of dispersion, and fits."""

    exact = serializers.BooleanField(allow_null=True, help_text="Of all gaps; false: of a sample of them.")
    zero_share = serializers.FloatField(allow_null=True)
    gap_s = serializers.ListField(child=serializers.FloatField())
    share_longer = serializers.ListField(child=serializers.FloatField())
    window_s = serializers.ListField(child=serializers.FloatField())
    idc = serializers.ListField(child=serializers.FloatField(allow_null=True), help_text="1 for Poisson arrivals.")
    fits = FitSerializer(many=True)


class HistogramsSerializer(PartSerializer):
    """Distributions of sizes and gaps."""

    scope = serializers.ChoiceField(choices=Measurement.Scope.choices)
    sizes = SizesSerializer()
    gaps = GapsSerializer()


class FlowsSerializer(PartSerializer):
    """A page of connections; `_ab` is what `a` sent."""

    count = serializers.IntegerField()
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)
    results = serializers.ListField(child=ConnectionField())


class MatrixSerializer(serializers.Serializer[Any]):
    """Rows send, columns receive, both in the order of `labels`."""

    labels = serializers.ListField(child=serializers.CharField(), help_text="Hosts, or numbers of ranks.")
    omitted = serializers.IntegerField(help_text="Hosts or ranks with less traffic, not included.")
    packets = MatrixField()
    wire_bytes = MatrixField()
    payload_bytes = MatrixField()
    retransmitted_segments = MatrixField()
    rtt_min_s = MatrixField(help_text="Null without a round trip.")


class PairSerializer(serializers.Serializer[Any]):
    """Messages from one rank to another."""

    source = serializers.IntegerField()  # type: ignore[assignment]  # a field, not the option of fields
    target = serializers.IntegerField()
    messages = serializers.IntegerField()
    bytes = serializers.IntegerField()


class MessagesSerializer(serializers.Serializer[Any]):
    """Pairs of ranks, those with most bytes first."""

    pairs = PairSerializer(many=True)
    omitted = serializers.IntegerField(help_text="Pairs with fewer bytes, not included.")
    missing = serializers.CharField(allow_null=True, help_text="Why there are none; null if there are.")


class MatricesSerializer(PartSerializer):
    """Traffic matrices from the capture, messages from the MPI profile."""

    hosts = MatrixSerializer(allow_null=True)
    ranks = MatrixSerializer(allow_null=True, help_text="Null if the ranks of connections are unknown.")
    ranks_missing = serializers.CharField(
        allow_null=True, help_text="Why some connections have no ranks; null if all have."
    )
    messages = MessagesSerializer()
