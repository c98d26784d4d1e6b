"""Registered programs: their form, and the figures of a pasted output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dashboard.panels.program.cautions import cautions_in
from dashboard.panels.program.definition import MOST_BYTES, at_rows, definition_of, rows_of, texts_of
from dashboard.panels.program.form import ProgramForm
from dashboard.panels.program.output import FormFigure, read_form
from experiments import workloads
from experiments.access import may_register_programs, may_replace_program, visible_trials
from experiments.common.storable import is_storable_text
from experiments.errors import FieldError, InvalidSpec, ProgramInUse
from experiments.models import Program
from experiments.models.program import read_definition
from experiments.reparse import Relabelled, newly_refused, relabelled
from experiments.specification.yaml_lines import YamlDocument, dump
from experiments.workloads.template import text_paths
from workers import queue


@require_http_methods(["GET", "HEAD", "POST"])
def register(request: HttpRequest, name: str = "") -> HttpResponse:
    """Show the form of a program; on POST register it or show errors (422)."""
    latest = _latest(request, name) if name else None
    if not may_register_programs(request.user):
        raise PermissionDenied
    if request.method != "POST":
        return _form(request, latest, texts_of(latest.definition if latest else {}))
    texts = {path: str(text) for path, text in request.POST.items()}

    def name_errors(new: str) -> list[FieldError]:
        if name or not is_storable_text(new) or Program.latest(new) is None:
            return []
        return [FieldError("name", f"{new!r} is registered: choose another name, or edit that program")]

    try:
        if "fill" in request.POST:
            return _form(request, latest, texts_of(_imported(request)))
        texts |= _uploaded(request, texts)
        definition = definition_of(texts, latest.definition if latest else None)
        if errors := name_errors(read_definition(definition).name):
            raise InvalidSpec(errors)
        cautions = [] if "anyway" in request.POST else _new_cautions(definition, latest)
        if latest and "anyway" not in request.POST and may_replace_program(request.user, latest.slug):
            changed = read_definition(definition)
            refused, tried = newly_refused(changed, visible_trials(request.user))
            units = relabelled(read_definition(latest.definition), changed)
            if refused or units:
                return _form(request, latest, texts, refused=refused, tried=tried, units=units, cautions=cautions)
        if cautions:
            return _form(request, latest, texts, cautions=cautions)
        program = queue.register_program(definition, author=request.user, name=name or None)
    except InvalidSpec as error:
        more = [] if "name" in error.by_path() else name_errors(texts.get("name", ""))
        return _form(request, latest, texts, at_rows(InvalidSpec([*error.errors, *more]), texts))
    if latest is not None and program.definition == latest.definition:
        messages.info(request, f"Nothing was changed: {program.title} keeps version {program.version}.")
    else:
        done = "changed" if latest else "registered"
        messages.success(request, f"{program.title} is {done}, version {program.version}.", extra_tags="ok")
    if workloads.is_absent(executable := program.definition["program"][0]):
        messages.warning(
            request, f"{executable} was not found on this machine: trials here would fail.", extra_tags="warn"
        )
    if "start" in request.POST or request.POST.get("anyway") == "start":
        return redirect(f"{reverse('new')}?workload={program.slug}")
    return redirect("workload", program.slug)


def _new_cautions(definition: Mapping[str, Any], latest: Program | None) -> list[str]:
    """Return the cautions that the latest version does not have. Raise InvalidSpec."""
    accepted = cautions_in(latest.definition) if latest else []
    return [caution for caution in cautions_in(read_definition(definition).to_dict()) if caution not in accepted]


@require_GET
def download(request: HttpRequest, name: str) -> HttpResponse:
    """Download the latest definition of a program as YAML for `script/manage program`."""
    response = HttpResponse(
        dump(dict(_latest(request, name).definition)), content_type="application/yaml; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="{name}.yaml"'
    return response


@require_POST
def rename(request: HttpRequest, name: str) -> HttpResponse:
    """Give a program another title."""
    program = _replaceable(request, name)
    try:
        program = Program.describe(name, title=request.POST.get("title", "").strip())
    except InvalidSpec as error:
        messages.error(request, f"Not renamed: {error.errors[0]}.", extra_tags="bad")
        return redirect("workload", name)
    messages.success(request, f"{name} has the title “{program.title}”.", extra_tags="ok")
    return redirect("workload", name)


@require_POST
def retire(request: HttpRequest, name: str) -> HttpResponse:
    """Withdraw a program from new experiments, or offer it again."""
    _replaceable(request, name)
    is_retired = "restore" not in request.POST
    program = Program.describe(name, retired=is_retired)
    words = "is retired: its experiments stay" if is_retired else "can be used by new experiments again"
    messages.success(request, f"{program.title} {words}.", extra_tags="ok")
    return redirect("workload", name)


@require_POST
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Delete a program that no experiment uses, with all versions."""
    program = _replaceable(request, name)
    try:
        Program.remove(name)
    except ProgramInUse as error:
        messages.error(request, f"{error} Retire it instead.", extra_tags="bad")
        return redirect("workload", name)
    messages.success(request, f"{program.title} is deleted.", extra_tags="ok")
    return redirect("workloads")


def _replaceable(request: HttpRequest, name: str) -> Program:
    """Return the program if the user may change it."""
    latest = _latest(request, name)
    if not may_replace_program(request.user, name):
        raise PermissionDenied
    return latest


def _latest(request: HttpRequest, name: str) -> Program:
    if not may_register_programs(request.user):
        raise PermissionDenied
    latest = Program.latest(name)
    if latest is None:
        raise Http404(f"no such program: {name}")
    return latest


def _imported(request: HttpRequest) -> dict[str, Any]:
    """Return the definition of an uploaded YAML file. Raise InvalidSpec."""
    file = request.FILES.get("yaml")
    if file is None:
        raise InvalidSpec([FieldError("yaml", "choose a file first")])
    try:
        document = YamlDocument(file.read(MOST_BYTES).decode(), limit=MOST_BYTES)
        if altered := list(document.altered(*text_paths(document.data))):
            raise InvalidSpec(altered)
        return read_definition(document.data).to_dict()
    except UnicodeDecodeError:
        raise InvalidSpec([FieldError("yaml", f"{file.name} is not UTF-8 text")]) from None
    except InvalidSpec as error:
        raise InvalidSpec(FieldError("yaml", f"{file.name}, {e}") for e in error.errors) from None


def _uploaded(request: HttpRequest, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the rows of uploaded input files. Raise InvalidSpec."""
    rows = rows_of(texts, "inputs")
    numbers = {row.get("name", ""): number for number, row in rows.items()}
    uploaded: dict[str, str] = {}
    for file in request.FILES.getlist("uploads"):
        name = file.name or "file"
        number = numbers.setdefault(name, max(numbers.values(), default=-1) + 1)
        try:
            text = file.read(MOST_BYTES).decode()
        except UnicodeDecodeError:
            raise InvalidSpec(
                [FieldError("inputs", f"{name} is not UTF-8 text: give its path as a file of the cluster")]
            ) from None
        uploaded |= {f"inputs.{number}.name": name, f"inputs.{number}.text": text}
    return uploaded


def _pattern_errors(error: InvalidSpec, figures: Sequence[FormFigure]) -> list[FieldError]:
    """Return the errors of patterns in the pasted output, without those of ``error``."""
    errors = [(figure.error_place.removeprefix("err-").replace("-", "."), figure.reading) for figure in figures]
    return [
        FieldError(path, reading.error)
        for path, reading in errors
        if reading and reading.error and path not in error.by_path()
    ]


def _form(
    request: HttpRequest,
    latest: Program | None,
    texts: Mapping[str, str],
    error: InvalidSpec | None = None,
    *,
    refused: Mapping[int, str] = MappingProxyType({}),
    tried: int = 0,
    units: Sequence[Relabelled] = (),
    cautions: Sequence[str] = (),
) -> HttpResponse:
    reading = read_form(texts)
    if error is not None:
        error = InvalidSpec([*error.errors, *_pattern_errors(error, reading["figures"])])
    context = {
        "place": "workloads",
        "program": latest,
        "form": ProgramForm(texts, error),
        "failing": sorted(refused.items(), reverse=True),
        "tried": tried,
        "units": units,
        "cautions": cautions,
        **reading,
    }
    is_refused = bool(error or refused or units or cautions)
    return render(request, "workloads/program.html", context, status=422 if is_refused else 200)


@require_POST
def output(request: HttpRequest) -> HttpResponse:
    """Read the figures of the form in a pasted output, as a trial would."""
    if not may_register_programs(request.user):
        raise PermissionDenied
    texts = {path: str(text) for path, text in request.POST.items()}
    # Split at blanks: an unfinished command may have open quotes.
    executable = next(iter(texts.get("program", "").split()), "")
    absent = executable if workloads.is_absent(executable) else ""
    return render(request, "workloads/_output.html", {**read_form(texts), "absent": absent, "live": True})
