"""The operating envelope: jobs that a service sustains over each link."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis import numbers
from analysis.conclusions.observations.envelope import FACTOR, Envelope, EnvelopeRow, Saturation, envelope
from dashboard.charts.studies import Loads, envelope_chart
from dashboard.labels import value_words
from dashboard.panels.parts.measured import Measured, ResultSource
from experiments.selectors.designs import CAPACITY, loads_of
from experiments.workloads import LoadTest

PROCESSORS = "processors"


def envelope_part(measured: Measured, targets: Mapping[str, str]) -> dict[str, Any] | None:
    """Return a table per source and a chart; None unless two loads were measured."""
    test = measured.workload.load_test if measured.workload else None
    if test is None:
        return None
    factor = _factor(targets.get("factor", ""))
    envelopes = [(s, _envelope(s, test, factor, virtual=_virtual(s, measured))) for s in measured.sources]
    envelopes = [
        (source, envelope)
        for source, envelope in envelopes
        if any(len(row.ratios) > 1 or row.uses for row in envelope.rows)
    ]
    if not envelopes or envelopes[0][0] is not measured.main:
        return None
    alone = len(envelopes) == 1
    return {
        "factor": factor,
        "tables": [
            {"name": source.name, "rows": [_row(row) for row in envelope.rows], "smallest": _smallest(envelope)}
            for source, envelope in envelopes
        ],
        "chart": envelope_chart(
            [
                Loads(
                    _link(row.capacity) if alone else f"{source.name}, {_link(row.capacity)}",
                    row.ratios,
                    _keys(source, test, row),
                )
                for source, envelope in envelopes
                for row in envelope.rows
            ],
            factor=factor,
            load=test.load.capitalize(),
            measured=len(envelopes[0][1].rows),
        ),
    }


def _virtual(source: ResultSource, measured: Measured) -> bool:
    return source is measured.main and measured.hosts_share_a_machine


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        return FACTOR
    return factor if 1 < factor < 1e6 else FACTOR


def _envelope(source: ResultSource, test: LoadTest, factor: float, *, virtual: bool) -> Envelope:
    loads = loads_of(source.rows, test)
    return envelope(loads, factor=factor, shared=test.same_processors if virtual else (), shared_name=PROCESSORS)


def _keys(source: ResultSource, test: LoadTest, row: EnvelopeRow) -> list[int]:
    keys = {
        (row_of_link.parameters.get(test.load), row_of_link.parameters.get(CAPACITY)): row_of_link.pk
        for row_of_link in source.with_metric(test.wall)
    }
    return [keys.get((jobs, row.capacity), 0) for jobs, _ in row.ratios]


def _row(row: EnvelopeRow) -> dict[str, Any]:
    return {
        "link": _link(row.capacity),
        "single": numbers.amount(row.single_s, "s"),
        "largest": _jobs(row.largest_acceptable),
        "refused": "none" if row.first_refused is None and row.ratios else _jobs(row.first_refused),
        "limit": numbers.NOTHING if row.limit is None else numbers.significant(row.limit, 2),
        "extrapolated": row.extrapolated,
        "first": _first(row.saturation),
        "saturated": row.saturation is not None and row.saturation.saturated,
        "evidence": "; ".join(
            f"{name} {numbers.amount(use, numbers.SHARE)} at {_jobs(jobs)}" for name, jobs, use in row.uses
        ),
    }


def _first(saturation: Saturation | None) -> str:
    if saturation is None:
        return numbers.NOTHING
    if not saturation.saturated:
        return f"nothing; at most {numbers.amount(saturation.use, numbers.SHARE)} of {saturation.resource}"
    return f"{saturation.resource}: {numbers.amount(saturation.use, numbers.SHARE)} at {_jobs(saturation.jobs)}"


def _smallest(rated: Envelope) -> list[tuple[str, str]]:
    """Return (jobs, smallest measured link that sustains them)."""
    jobs = rated.measured_jobs()
    pairs = [(count, rated.smallest_acceptable(count)) for count in jobs]
    return [(_jobs(count), "none of these" if link is None else _link(link)) for count, link in pairs]


def _jobs(jobs: float | None) -> str:
    return numbers.NOTHING if jobs is None else numbers.significant(jobs)


def _link(capacity: float) -> str:
    return value_words(CAPACITY, capacity)
