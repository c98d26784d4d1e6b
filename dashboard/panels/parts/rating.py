"""Floating-point rate relative to theoretical peak, price and power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis import numbers
from analysis.conclusions.observations.economics import ClusterFacts, rate
from dashboard.labels import parameters_sentence
from dashboard.panels.parts.measured import Measured, ResultSource, cluster_facts, stated_facts
from experiments.cluster_kinds.facts import fields as cluster_facts_by_name
from experiments.selectors import swept_parameters

POWER = "power_mean_w"
"""Of packages, memory and used GPUs, from the meters of the hosts of a trial."""
_NEEDED = {
    "hosts": "hosts",
    "clock_hz": "clock_hz",
    "flops_per_cycle": "operations_per_cycle",
    "price": "price",
    "watts": "watts",
}


def rating_part(measured: Measured, targets: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the rates of every source relative to its facts; None without GFLOP/s."""
    metric = measured.workload.gflops if measured.workload else None
    if metric is None or not measured.main.with_metric(metric):
        return None
    tables = [_table(source, metric) for source in measured.sources if source.with_metric(metric)]
    return {"tables": tables}


def _table(source: ResultSource, metric: str) -> dict[str, Any]:
    facts, rows = cluster_facts(source.experiment), source.with_metric(metric)
    names = swept_parameters(rows)
    best = max(rows, key=lambda row: row.median(metric) or 0.0)
    prices = _prices(source)
    titles = cluster_facts_by_name()
    unknown = [name for name in _NEEDED if getattr(facts, name) is None]
    if all(row.values.get(POWER) for row in rows):
        unknown = [name for name in unknown if name != "watts"]
    missing = [str(titles[_NEEDED[name]].title).lower() for name in unknown]
    return {
        "name": source.name,
        "peak": None if facts.peak_flops is None else numbers.significant(facts.peak_flops / 1e9),
        "missing": missing,
        "cluster": source.experiment.cluster,
        "currency": stated_facts(source.experiment).get("currency", ""),
        "prices": [name for name, _ in prices],
        "rows": [
            {
                "point": parameters_sentence(row.parameters, names or ["hosts"]),
                "highest": row is best,
                **_cells(
                    row.median(metric) or 0.0,
                    _in_use(facts, row.hosts),
                    [price for _, price in prices],
                    row.median(POWER),
                ),
            }
            for row in rows
        ],
    }


def _in_use(facts: ClusterFacts, hosts: int) -> ClusterFacts:
    """Return facts with the peak of the used hosts; price and power stay total."""
    if facts.hosts is None or not hosts or hosts >= facts.hosts:
        return facts
    return replace(facts, hosts=hosts)


def _prices(source: ResultSource) -> list[tuple[str, float | None]]:
    other = stated_facts(source.experiment).get("other_prices", {})
    return [("", cluster_facts(source.experiment).price), *other.items()]


def _cells(
    gflops: float, facts: ClusterFacts, prices: Sequence[float | None], measured_w: float | None
) -> dict[str, Any]:
    """Return the cells of a rate; its power is the measured one, else the stated one."""
    if gflops <= 0:
        nothing = dict.fromkeys(("peak", "power"), numbers.NOTHING)
        return {"gflops": numbers.significant(gflops), "prices": [numbers.NOTHING for _ in prices], **nothing}
    rating = rate(gflops, facts if measured_w is None else replace(facts, watts=measured_w))
    priced = [rate(gflops, replace(facts, price=price)).price_per_gflops for price in prices]
    return {
        "gflops": numbers.significant(gflops),
        "peak": numbers.quantity(rating.peak_share, numbers.SHARE)[0],
        "prices": [numbers.NOTHING if price is None else numbers.significant(price) for price in priced],
        "power": numbers.NOTHING if rating.mflops_per_watt is None else numbers.significant(rating.mflops_per_watt),
        "power_from": "" if rating.mflops_per_watt is None else "stated" if measured_w is None else "measured",
    }
