"""How the parts of a trial look in JSON: curves, distributions, connections and matrices, each with its units."""

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
    """One row: the columns that every connection has are named, the others are numbers of what was seen on it."""


@extend_schema_field({"type": "array", "items": _NUMBERS})
class MatrixField(serializers.ListField):
    """Rows of numbers."""


class PartSerializer(serializers.Serializer[Any]):
    """What all parts tell beside their numbers."""

    missing = serializers.CharField(allow_null=True, help_text="Why there is nothing; null where there is.")
    units = serializers.DictField(
        child=serializers.CharField(), help_text="By name; what has none is a count or a word."
    )


class CurveSerializer(serializers.Serializer[Any]):
    """One quantity over time. Of hosts, whose samples may be drawn together, with lowest and highest of each step."""

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
    step_s = serializers.FloatField(
        allow_null=True, help_text="Length of a step; null where samples came as they came."
    )
    t_s = serializers.ListField(
        child=serializers.FloatField(),
        allow_null=True,
        help_text="Ends of the steps since the first sample; null of traffic.",
    )
    count = serializers.IntegerField(help_text="Hosts that there are; of traffic 1, the capture.")
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
    """Times between packets: the share that is longer, how counts in windows are dispersed, and fits."""

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
    omitted = serializers.IntegerField(help_text="Hosts or ranks with less traffic, which are left out.")
    packets = MatrixField()
    wire_bytes = MatrixField()
    payload_bytes = MatrixField()
    retransmitted_segments = MatrixField()
    rtt_min_s = MatrixField(help_text="Null where there was no round trip.")


class PairSerializer(serializers.Serializer[Any]):
    """What one rank sent to another inside MPI."""

    source = serializers.IntegerField()  # type: ignore[assignment]  # a field, not the option of fields
    target = serializers.IntegerField()
    messages = serializers.IntegerField()
    bytes = serializers.IntegerField()


class MessagesSerializer(serializers.Serializer[Any]):
    """Pairs of ranks, those with most bytes first."""

    pairs = PairSerializer(many=True)
    omitted = serializers.IntegerField(help_text="Pairs with fewer bytes, which are left out.")
    missing = serializers.CharField(allow_null=True, help_text="Why there are none; null where there are.")


class MatricesSerializer(PartSerializer):
    """Who sent to whom: packets as the capture saw them, messages as the ranks counted them."""

    hosts = MatrixSerializer(allow_null=True)
    ranks = MatrixSerializer(allow_null=True, help_text="Null where the ranks of the connections are not known.")
    ranks_missing = serializers.CharField(
        allow_null=True, help_text="Why connections, all or some, are known by host alone; null where none is."
    )
    messages = MessagesSerializer()
