"""Workloads: their list, and a page of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET
from pydantic.fields import FieldInfo

from analysis.numbers import NOTHING
from dashboard.labels import command_text
from dashboard.templatetags.rankwire import cell
from experiments import workloads as registry
from experiments.access import may_register_programs, may_replace_program, visible_deleted, visible_experiments
from experiments.models import Experiment, Program
from experiments.workloads.fields import choices_of


@require_GET
def workloads(request: HttpRequest) -> HttpResponse:
    """List all workloads."""
    used = dict(
        visible_experiments(request.user, Experiment.objects.filter(published=False))
        .order_by()
        .values_list("workload")
        .annotate(count=Count("pk"))
        .values_list("workload", "count")
    )
    rows: list[dict[str, Any]] = [
        {
            "workload": workload,
            "kind": _kind(workload),
            "missing": [package.partition(" (")[0] for package in registry.missing_packages(workload)],
            "experiments": used.get(workload.slug, 0),
        }
        for workload in registry.registry()
    ]
    context = {
        "place": "workloads",
        "rows": [row for row in rows if not row["workload"].retired],
        "retired": [row for row in rows if row["workload"].retired],
        "may_register": may_register_programs(request.user),
    }
    return render(request, "workloads/page.html", context)


@require_GET
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a workload with its parameters and figures."""
    workload = registry.find(slug)
    if workload is None:
        raise Http404(f"no such workload: {slug}")
    fields = workload.parameters_type.model_fields
    program = Program.latest(slug) if workload.registered else None
    placeholders = program.definition.get("placeholders", {}) if program else {}
    may_edit = workload.registered and may_register_programs(request.user)
    may_replace = may_edit and may_replace_program(request.user, slug)
    experiments = visible_experiments(request.user, Experiment.objects.filter(published=False, workload=slug)).count()
    trashed = sum(row.workload == slug for row in visible_deleted(request.user))
    uses = Program.uses(slug) if may_replace else 0
    context = {
        "place": "workloads",
        "workload": workload,
        "kind": _kind(workload),
        "version": program and program.version,
        "versions": _versions(slug) if program else (),
        "figures": [(figure, _source_of(figure, program)) for figure in workload.figures],
        "missing": registry.missing_packages(workload),
        "parameters": [
            _parameter(name, fields[name], placeholders.get(name, {}))
            for name in sorted(fields, key=lambda name: bool(placeholders) and name not in placeholders)
        ],
        "experiments": experiments,
        "trashed": trashed,
        "of_others": max(0, uses - experiments - trashed),
        "may_edit": may_edit,
        "may_replace": may_replace,
        "uses": uses,
    }
    return render(request, "workloads/workload.html", context)


def _versions(slug: str) -> list[tuple[Program, str]]:
    """Return the versions of a program with their commands, the latest first."""
    stored = Program.objects.filter(slug=slug).select_related("author").order_by("-version")
    return [(version, command_text(version.definition["program"])) for version in stored]


def _source_of(figure: registry.FigureOfMerit, program: Program | None) -> str:
    """Return what reads a figure in the output of a registered program; else empty."""
    rows = program.definition.get("extract", ()) if program else ()
    row: Mapping[str, str] = next((row for row in rows if program and figure.id == f"{program.slug}.{row['name']}"), {})
    source = row.get("regex") or row.get("json_pointer") or row.get("csv_column") or ""
    return f"{row['file']}: {source}" if row.get("file") else source


def _kind(workload: registry.WorkloadDefinition) -> str:
    if workload.registered:
        return "Registered"
    return "Built-in" if workload in registry.built_in() else "Python module"


def _parameter(name: str, info: FieldInfo, placeholder: Mapping[str, Any]) -> dict[str, Any]:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    bounds = {
        bound: getattr(rule, bound)
        for rule in info.metadata
        for bound in ("ge", "gt", "le", "lt")
        if hasattr(rule, bound)
    }
    low = bounds.get("ge", bounds.get("gt", placeholder.get("minimum")))
    high = bounds.get("le", bounds.get("lt", placeholder.get("maximum")))
    choices = ", ".join(map(str, choices_of(info)))
    return {
        "name": name,
        "title": info.title or name,
        "help": info.description or "",
        "unit": extra.get("unit", ""),
        "default": None if info.is_required() else info.default,
        "allowed": choices or _allowed(low, high, low_open="gt" in bounds),
    }


def _allowed(low: float | None, high: float | None, *, low_open: bool) -> str:
    if low is None:
        return NOTHING if high is None else f"up to {cell(high)}"
    least = f"over {cell(low)}" if low_open else cell(low)
    return f"{least} to {cell(high)}" if high is not None else least if low_open else f"{least} or more"
