"""``/api/v1/trials/ID/``: curves, distributions, connections, matrices.

An analysis has at most 2000 bins, 2000 connections and the largest rows of its matrices; hosts and connections are paged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import chart_tables, etag, schema
from dashboard.api.rest.filtering import clean, one_of, refuse_unknown
from dashboard.api.rest.pagination import FURTHEST, MOST, Pagination
from dashboard.api.trials.serializers import (
    OF,
    FlowsSerializer,
    HistogramsSerializer,
    MatricesSerializer,
    MatrixSerializer,
    PairSerializer,
    SeriesSerializer,
)
from dashboard.panels.trial.chart_tables import charts_of
from dashboard.panels.trial.host_samples import MOST_HOSTS, QUANTITIES, NoSamples, samples_of
from experiments.files import read_analysis, read_mpi_profile
from experiments.models import Measurement, Trial

UNITS: Final[Mapping[str, str]] = {
    "bytes": "B", "len": "B", "s": "s", "ns": "ns", "bps": "bit/s", "Bps": "B/s", "packets": "packets",
    "segments": "segments", "share": "1", "W": "W", "Hz": "Hz", "C": "°C",
}  # fmt: skip
"""Units by suffix of a name; a processor ``share`` is of one core."""
SORTED_BY: Final = (
    "connection", "start_ns", "packets", "wire_bytes", "payload_bytes", "goodput_bytes", "duration_s", "goodput_bps", "rtt_min_s",
    "rtt_median_s", "rtt_p95_s", "response_latency_s", "retransmitted_segments", "retransmitted_bytes",
)  # fmt: skip
_NO_CAPTURE: Final = "This trial has no analysis of a capture, or its file was changed."
_NO_MPI: Final = "The capture shows no traffic that is known to be of MPI."
_NO_RANKS: Final = "The capture does not show the ranks of its connections."
_NO_PROFILE: Final = "The ranks were not profiled, so that messages were not counted."
_SCOPE: Final = OpenApiParameter("scope", enum=Measurement.Scope.values, description="`all` by default.")


def _page(most: int, few: int) -> list[OpenApiParameter]:
    limit = {"type": "integer", "maximum": 10**18}
    return [
        OpenApiParameter("limit", limit, description=f"At most {most}; {few} by default."),
        OpenApiParameter("offset", {"type": "integer", "maximum": FURTHEST}),
    ]


class HostPages(Pagination):
    """Each host has seven curves."""

    default_limit = 16
    max_limit = MOST_HOSTS


class PartActions:
    """Actions of one trial, mixed into its view set."""

    @etag.row_action(
        SeriesSerializer,
        _SCOPE,
        OpenApiParameter("of", enum=OF, description="The capture or the samples of hosts; `traffic` by default."),
        *_page(MOST_HOSTS, HostPages.default_limit),
    )
    def series(self, request: Request, pk: str) -> HttpResponseBase:
        """Return rates over time of the capture or of each host."""
        trial = self._trial()
        refuse_unknown(request, {"scope", "of", "limit", "offset"})
        scope, of = one_of(request, "scope", Measurement.Scope.values), one_of(request, "of", OF)
        if of == "hosts":
            if scope != Measurement.Scope.ALL:
                raise ValidationError({"scope": ["hosts do not distinguish MPI traffic"]})
            return etag.answer(request, SeriesSerializer(_of_hosts(trial, request)).data)
        for name in ("limit", "offset"):
            if name in request.query_params:
                raise ValidationError({name: ["is for hosts: the capture has one series"]})
        return etag.answer(request, SeriesSerializer(_of_traffic(trial, scope)).data)

    @etag.row_action(HistogramsSerializer, _SCOPE)
    def histograms(self, request: Request, pk: str) -> HttpResponseBase:
        """Return the distributions of packet sizes and inter-arrival times."""
        trial = self._trial()
        refuse_unknown(request, {"scope"})
        scope = one_of(request, "scope", Measurement.Scope.values)
        curves, missing = _curves(trial, scope)
        sizes, gaps = curves.get("size_histogram") or {}, curves.get("interarrival") or {}
        longer, dispersion = gaps.get("ccdf") or {}, gaps.get("idc") or {}
        parts = {
            "sizes": {"size_bytes": sizes.get("orig_len") or [], "packets": sizes.get("packets") or []},
            "gaps": {
                **{name: gaps.get(name) for name in ("exact", "zero_share")},
                **{name: longer.get(name) or [] for name in ("gap_s", "share_longer")},
                **{name: dispersion.get(name) or [] for name in ("window_s", "idc")},
                "fits": gaps.get("fits") or [],
            },
        }
        units = _units((*parts["sizes"], *parts["gaps"]))
        data = {**parts, "scope": scope, "units": units, "missing": missing}
        return etag.answer(request, HistogramsSerializer(data).data)

    @etag.row_action(
        FlowsSerializer,
        OpenApiParameter(
            "ordering",
            enum=[name for column in SORTED_BY for name in (column, f"-{column}")],
            description="Column to sort by, with `-` the largest first; rows without a value are last.",
        ),
        *_page(MOST, Pagination.default_limit),
    )
    def flows(self, request: Request, pk: str) -> HttpResponseBase:
        """List the connections of all traffic; of very many, only the largest are stored."""
        trial = self._trial()
        refuse_unknown(request, {"limit", "offset", "ordering"})
        analysis = read_analysis(trial)
        rows = _sorted(
            (analysis or {}).get("flows") or [], clean(request, "ordering"), "ordering" in request.query_params
        )
        pages = Pagination()
        page: Any = pages.paginate_queryset(rows, request)
        page_data: dict[str, Any] = dict(pages.get_paginated_response(page).data)
        missing = _NO_CAPTURE if analysis is None else None
        units = _units(dict.fromkeys(name for row in page for name in row))
        return etag.answer(request, {"missing": missing, "units": units, **page_data})

    @etag.row_action(MatricesSerializer)
    def matrices(self, request: Request, pk: str) -> HttpResponseBase:
        """Return traffic matrices by host and rank, and messages by rank."""
        trial = self._trial()
        refuse_unknown(request, set())
        analysis, profile = read_analysis(trial), read_mpi_profile(trial)
        stored_matrices = (analysis or {}).get("matrices") or {}
        tables = {
            name: stored_matrices[name] if (stored_matrices.get(name) or {}).get("labels") else None
            for name in ("hosts", "ranks")
        }
        pairs = [] if profile is None else profile["pairs"]
        data = {
            **tables,
            "ranks_missing": _ranks_missing(analysis, tables["ranks"]),
            "missing": _NO_CAPTURE if analysis is None else None,
            "units": _units((*MatrixSerializer().fields, *PairSerializer().fields)),
            "messages": {
                "pairs": [dict(zip(PairSerializer().fields, pair, strict=True)) for pair in pairs],
                "omitted": 0 if profile is None else profile["pairs_left_out"],
                "missing": _NO_PROFILE if profile is None else None,
            },
        }
        return etag.answer(request, MatricesSerializer(data).data)

    @schema.row_action(
        "get",
        chart_tables.ChartSerializer(many=True),
        (400, 404, 409),
        operation_id="trials_charts_list",
        **schema.UNFILTERED,
    )
    def charts(self, request: Request, pk: str) -> Response:
        """List the charts of the trial's page."""
        charts = charts_of(self._trial())
        refuse_unknown(request, set())
        return Response(charts.listed())

    @schema.row_action(
        "get",
        chart_tables.RESPONSES,
        (409,),
        parameters=[*chart_tables.PARAMETERS],
        url_path=chart_tables.NAME,
        filter_backends=[],
    )
    def chart(self, request: Request, pk: str, name: str) -> HttpResponse:
        """Return the table behind a chart, in the units of its column names."""
        return chart_tables.table_answer(request, charts_of(self._trial()), name)

    def _trial(self) -> Trial:
        trial: Trial = self.get_object()  # type: ignore[attr-defined]  # of the view set
        return trial


def _curves(trial: Trial, scope: str) -> tuple[dict[str, Any], str | None]:
    analysis = read_analysis(trial)
    if analysis is None:
        return {}, _NO_CAPTURE
    curves: dict[str, Any] = analysis if scope == Measurement.Scope.ALL else analysis.get("mpi") or {}
    return curves, None if (curves.get("series") or {}).get("packets") else _NO_MPI


def _ranks_missing(analysis: Mapping[str, Any] | None, matrix: Mapping[str, Any] | None) -> str | None:
    """Return why MPI connections have no ranks; None if all have."""
    if analysis is None:
        return _NO_CAPTURE
    ranks = (analysis.get("matrices") or {}).get("ranks") or {}
    if why := ranks.get("by_host_alone"):
        return f"{why[:1].upper()}{why[1:]}."
    if matrix is not None:
        return None
    return _NO_RANKS if ((analysis.get("mpi") or {}).get("metrics") or {}).get("packets") else _NO_MPI


def _of_traffic(trial: Trial, scope: str) -> dict[str, Any]:
    curves, missing = _curves(trial, scope)
    series = curves.get("series") or {}
    columns = {name: values for name, values in series.items() if isinstance(values, list)}
    return {
        "of": "traffic",
        "scope": scope,
        "missing": missing,
        "units": _units(columns),
        "start_s": series.get("start_s"),
        "step_s": series.get("bin_s"),
        "t_s": None,
        "count": int(bool(columns)),
        "next": None,
        "series": [_curve(name, None, values) for name, values in columns.items()],
    }


def _of_hosts(trial: Trial, request: Request) -> dict[str, Any]:
    data: dict[str, Any] = {"of": "hosts", "scope": Measurement.Scope.ALL, "units": _units(QUANTITIES), "start_s": None}
    pages = HostPages()
    try:
        samples = samples_of(trial)
    except NoSamples as none:
        pages.paginate_queryset([], request)
        return {**data, "missing": str(none), "step_s": None, "t_s": None, "count": 0, "next": None, "series": []}
    indices: Any = pages.paginate_queryset(range(len(samples.hosts)), request)
    return {
        **data,
        "units": _units(samples.quantities),
        "missing": None,
        "step_s": samples.step_s,
        "t_s": samples.t_s,
        "count": len(samples.hosts) + samples.omitted,
        "next": pages.get_next_link(),
        "series": [
            _curve(
                quantity,
                samples.hosts[host],
                *(
                    _numbers(part[host, :, index], samples.count[host])
                    for part in (samples.mean, samples.low, samples.high)
                ),
            )
            for host in indices
            for index, quantity in enumerate(samples.quantities)
        ],
    }


def _curve(quantity: str, host: str | None, values: Any, low: Any = None, high: Any = None) -> dict[str, Any]:
    return {"quantity": quantity, "host": host, "values": values, "low": low, "high": high}


def _numbers(values: Any, count: Any) -> list[float | None]:
    return [float(value) if some and np.isfinite(value) else None for value, some in zip(values, count, strict=True)]


def _sorted(rows: list[dict[str, Any]], ordering: str, is_requested: bool) -> list[dict[str, Any]]:
    if not is_requested:
        return rows
    column = ordering.removeprefix("-")
    if column not in SORTED_BY:
        raise ValidationError({"ordering": [f"must be one of {', '.join(SORTED_BY)}, with - the largest first"]})
    valued = [row for row in rows if row.get(column) is not None]
    rest = [row for row in rows if row.get(column) is None]
    return [*sorted(valued, key=lambda row: row[column], reverse=ordering.startswith("-")), *rest]


def _units(names: Iterable[str]) -> dict[str, str]:
    """Return the units of names with a known suffix."""
    endings = {name: name.removesuffix("_ab").removesuffix("_ba") for name in names}
    units = {
        name: "1/s" if end.endswith("_per_s") else UNITS.get(end.rpartition("_")[2]) for name, end in endings.items()
    }
    return {name: unit for name, unit in units.items() if unit}
