"""Workloads: their list, and the form that registers programs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods
from pydantic.fields import FieldInfo

from analysis.numbers import NOTHING
from dashboard.panels.new.form import Field
from dashboard.templatetags.rankwire import cell
from experiments import workloads as registry
from experiments.access import may_register_programs, visible_experiments
from experiments.errors import FieldError, InvalidSpec
from experiments.models import Experiment, Program
from experiments.specification.yaml_lines import YamlDocument, dump
from experiments.workloads.definition import MAX_INPUT_CHARACTERS, ProgramDefinition
from experiments.workloads.template import text_fields
from workers import queue


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
    context = {"place": "workloads", "rows": rows, "may_register": may_register_programs(request.user)}
    return render(request, "workloads/page.html", context)


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
    if low is None:
        return NOTHING if high is None else f"up to {cell(high)}"
    least = f"over {cell(low)}" if low_open else cell(low)
    return f"{least} to {cell(high)}" if high is not None else least if low_open else f"{least} or more"


_GROUPS: Final = (
    (
        "Identity",
        "Specifications name it as workload: NAME. Users with the submitter role can run it.",
        ("name", "title", "summary"),
    ),
    (
        "Command",
        "One process per rank, without a shell. {name} is replaced by a parameter, {ranks} by the number of ranks.",
        ("program", "placeholders", "inputs", "decks", "threads", "environment"),
    ),
    (
        "Location",
        "Differences between clusters, and modules that every host loads.",
        ("clusters", "modules", "container", "parts"),
    ),
    (
        "Output",
        "Changes here need no new trials: stored outputs are read again.",
        ("extract", "deciding", "success", "failure", "keep"),
    ),
)
_TITLES: Final = {
    "name": "Name",
    "title": "Title",
    "summary": "Summary",
    "deciding": "Deciding figure",
    "clusters": "On clusters",
    "placeholders": "Parameters",
}
_EXAMPLES: Final = {
    "placeholders": "steps: {type: integer, minimum: 1, default: 100}",
    "inputs": "in.deck: |\n  run {steps}",
    "decks": "in.deck: /data/decks/{size}.deck",
    "environment": "MODE: fast",
    "clusters": "slurm-lab: {binary: /opt/solver/bin/solver, modules: [openmpi]}",
    "modules": "[openmpi/4.1, solver]",
    "parts": "- {from_rank: 4, program: [./ocean]}",
    "extract": "- {name: time_s, unit: s, direction: lower, regex: 'Total time = (\\S+)'}",
    "keep": "['*.log']",
}
"""Examples of fields in YAML."""
_UPLOADS: Final = {"inputs": "uploads"}
"""Fields with uploads: field -> name of the upload."""
_MOST_BYTES: Final = 4 * MAX_INPUT_CHARACTERS
_LONG: Final = ("program", "container", "success", "failure")


@dataclass(frozen=True, slots=True)
class ProgramField(Field):
    """A field of the form; one with an ``example`` has several lines."""

    is_long: bool = False
    example: str = ""
    upload: str = ""

    @property
    def lines(self) -> int:
        return max(3, self.value.count("\n") + 2)


@require_http_methods(["GET", "HEAD", "POST"])
def register(request: HttpRequest, name: str = "") -> HttpResponse:
    """Show the form of a program; on POST register it or show errors (422)."""
    if not may_register_programs(request.user):
        raise PermissionDenied
    latest = Program.latest(name) if name else None
    if name and latest is None:
        raise Http404(f"no such program: {name}")
    if request.method != "POST":
        return _form(request, latest, _texts(latest.definition if latest else {}))
    texts = {field: request.POST.get(field, "") for field in _fields()}
    try:
        definition = _definition(request.POST)
        if uploaded := _uploaded(request):
            definition["inputs"] = {**(definition.get("inputs") or {}), **uploaded}
            texts["inputs"] = _as_yaml(definition["inputs"])
        program = queue.register_program(definition, author=request.user, name=name or None)
    except InvalidSpec as error:
        return _form(request, latest, texts, error)
    messages.success(request, f"{program.slug} is registered, version {program.version}.", extra_tags="ok")
    return redirect("workloads")


def _fields() -> list[str]:
    return [field for _, _, fields in _GROUPS for field in fields]


def _definition(post: QueryDict) -> dict[str, Any]:
    definition: dict[str, Any] = {}
    errors: list[FieldError] = []
    for field in _fields():
        text = post.get(field, "").replace("\r\n", "\n").strip()
        if not text:
            continue
        try:
            definition[field] = _read(field, text)
        except (InvalidSpec, ValueError) as error:
            errors.append(FieldError(field, f"cannot be read: {str(error).splitlines()[0]}"))
    if errors:
        raise InvalidSpec(errors)
    return definition


def _uploaded(request: HttpRequest) -> dict[str, str]:
    """Return the texts of uploaded input files by name. Raise InvalidSpec."""
    texts = {}
    for file in request.FILES.getlist(_UPLOADS["inputs"]):
        name = file.name or "file"
        try:
            texts[name] = file.read(_MOST_BYTES).decode().replace("\r\n", "\n")
        except UnicodeDecodeError:
            raise InvalidSpec([FieldError("inputs", f"{name} is not UTF-8 text: give its path under decks")]) from None
    return texts


def _read(field: str, text: str) -> Any:
    if field in _EXAMPLES:
        document = YamlDocument(f"{text}\n", limit=_MOST_BYTES)  # the last line needs a line feed
        if field == "placeholders" and (altered := list(document.altered(*text_fields(document.data)))):
            raise InvalidSpec(altered)
        return document.data
    if field == "program":
        return shlex.split(text)
    return int(text) if field == "threads" and text.isdecimal() else text


def _texts(definition: Mapping[str, Any]) -> dict[str, str]:
    texts = {field: str(definition.get(field, "")) for field in _fields() if field not in _EXAMPLES}
    texts["program"] = shlex.join(definition.get("program", ()))
    for field in _EXAMPLES:
        held = definition.get(field)
        texts[field] = _as_yaml(held) if held else ""
    return texts


def _as_yaml(held: Any) -> str:
    return dump(held, width=100).strip()


def _form(
    request: HttpRequest, latest: Program | None, texts: Mapping[str, str], error: InvalidSpec | None = None
) -> HttpResponse:
    errors = error.by_path() if error else {}
    groups = [(title, purpose, [_field(name, texts, errors) for name in names]) for title, purpose, names in _GROUPS]
    context = {"place": "workloads", "program": latest, "groups": groups, "others": errors.get("", ())}
    return render(request, "workloads/program.html", context, status=422 if error else 200)


def _field(name: str, texts: Mapping[str, str], errors: Mapping[str, Any]) -> Field:
    info = ProgramDefinition.model_fields[name]
    # Errors within a table are shown at the table.
    field_errors = [
        sentence for path, sentences in errors.items() if path.split(".")[0] == name for sentence in sentences
    ]
    label, hint = _TITLES.get(name, info.title or name), info.description or ""
    if name == "program":
        hint = "As on the command line: ./solver control --steps={steps}"
    upload, example = _UPLOADS.get(name, ""), _EXAMPLES.get(name, "")
    options: dict[str, Any] = {"is_long": name in _LONG, "example": example, "upload": upload}
    return ProgramField(name, label, texts[name], hint=hint, errors=field_errors, **options)
