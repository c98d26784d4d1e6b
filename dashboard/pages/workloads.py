"""Workloads: the programs that can be measured, with their parameters and figures of merit."""

from __future__ import annotations

from typing import Any

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET
from pydantic.fields import FieldInfo

from analysis.numbers import NOTHING
from dashboard.templatetags.rankwire import cell
from experiments import workloads as registry
from experiments.access import may_register_programs, visible_experiments
from experiments.models import Experiment


@require_GET
def workloads(request: HttpRequest) -> HttpResponse:
    """Every workload of the registry."""
    used = dict(
        visible_experiments(request.user, Experiment.objects.filter(published=False))
        .order_by()
        .values_list("workload")
        .annotate(count=Count("pk"))
        .values_list("workload", "count")
    )
    rows = [
        {
            "workload": workload,
            "missing": registry.missing_packages(workload),
            "parameters": [_parameter(name, info) for name, info in workload.parameters_type.model_fields.items()],
            "experiments": used.get(workload.slug, 0),
            "registered": workload.registered,
        }
        for workload in registry.registry()
    ]
    shown = {"place": "workloads", "rows": rows, "may_register": may_register_programs(request.user)}
    return render(request, "workloads/page.html", shown)


def _parameter(name: str, info: FieldInfo) -> dict[str, Any]:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    bounds = {
        bound: getattr(rule, bound)
        for rule in info.metadata
        for bound in ("ge", "gt", "le", "lt")
        if hasattr(rule, bound)
    }
    low, high = bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt"))
    return {
        "name": name,
        "title": info.title or name,
        "help": info.description or "",
        "unit": extra.get("unit", ""),
        "default": info.default,
        "allowed": _allowed(low, high, low_open="gt" in bounds),
    }


def _allowed(low: float | None, high: float | None, *, low_open: bool) -> str:
    """The range in words; a dash where nothing bounds the parameter."""
    if low is None:
        return NOTHING if high is None else f"up to {cell(high)}"
    least = f"over {cell(low)}" if low_open else cell(low)
    return f"{least} to {cell(high)}" if high is not None else least if low_open else f"{least} or more"
