"""Importer of run reports of ReFrame 4 (data versions 4.x).

They are written by ``--report-file`` (https://reframe-hpc.readthedocs.io). A test on a partition is an experiment, its parameters and
the environment are varied, a test case that ended is a trial. The hosts are those of the job's list of nodes. A case that only missed
its reference was measured as any other.
"""

from __future__ import annotations

import math
from typing import Any, Final, TypeGuard

from pydantic import Field, model_validator

from analysis.numbers import plural
from experiments.errors import BadBundle
from experiments.exchange.importers.report import (
    Lenient,
    ToolReport,
    checked,
    described,
    keep_apart,
    keep_figure,
    moment,
    parameters,
    usable,
)
from experiments.exchange.measured import MOST_RANKS
from experiments.exchange.record_schemas import Items

_TOOL: Final = "reframe"
_UNDEFINED: Final = "<undefined>"
"""Value of a variable that a test never set."""
_PAIR: Final = " %"
_MAJOR: Final = "4."
_LONGEST_NAME: Final = 200


class _Session(Lenient):
    data_version: str
    version: str = ""
    hostname: str = ""
    user: str = ""


class _Case(Lenient):
    name: str
    display_name: str = ""
    system: str
    partition: str
    environ: str
    result: str
    fail_phase: str | None = None
    fail_reason: str | None = None
    fixture: bool = False
    num_tasks: int | None = None
    """0 and -N: the test took as many as the nodes that it found have room for."""
    num_tasks_per_node: int | None = None
    job_nodelist: Items[str] = Field([])
    job_completion_time_unix: float | None = None
    time_run: float | None = None
    executable: str | None = None
    executable_opts: Items[str] = Field([])
    perfvalues: dict[str, list[Any]] | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_undefined(cls, case: Any) -> Any:
        if not isinstance(case, dict):
            return case
        return {name: value for name, value in case.items() if value is not None and value != _UNDEFINED}

    @property
    def full_name(self) -> str:
        return self.display_name or self.name

    @property
    def hosts(self) -> int | None:
        if self.job_nodelist:
            return len(set(self.job_nodelist))
        if _is_count(self.num_tasks) and _is_count(self.num_tasks_per_node):
            return math.ceil(self.num_tasks / self.num_tasks_per_node)
        return None

    @property
    def ranks(self) -> int | None:
        if _is_count(self.num_tasks):
            return self.num_tasks
        return self.hosts * self.num_tasks_per_node if self.hosts and _is_count(self.num_tasks_per_node) else None


def _is_count(value: int | None) -> TypeGuard[int]:
    return value is not None and 1 <= value <= MOST_RANKS


class _Run(Lenient):
    testcases: Items[dict[str, Any]]
    """Checked one by one: an odd one is excluded, and the others are imported."""


class _Report(Lenient):
    session_info: _Session
    runs: Items[_Run]
    restored_cases: list[Any] = Field([])


def recognises(data: dict[str, Any]) -> bool:
    return isinstance(data.get("session_info"), dict) and "runs" in data


def read(data: dict[str, Any]) -> ToolReport:
    """Return the test cases as trials. Raise BadBundle for another version or format."""
    version = data["session_info"].get("data_version")
    if not isinstance(version, str) or not version.startswith(_MAJOR):
        raise BadBundle(
            f"Reports of ReFrame are read in the data versions {_MAJOR}x; this one is {str(version)[:20]!r}."
        )
    report = checked(_Report, data, "ReFrame")
    session = report.session_info
    result = ToolReport(f"ReFrame {session.version}".strip(), [])
    source = f"{result.tool}{f' on {session.hostname}' if session.hostname else ''}"
    sets: dict[tuple[str, str], dict[str, Any]] = {}
    for number, run in enumerate(report.runs, start=1):
        for data in run.testcases:
            of_run = f", run {number}" if len(report.runs) > 1 else ""
            case = usable(
                _Case, data, f"{data.get('display_name') or data.get('name') or 'a case'}{of_run}", result.left_out
            )
            if case is None:
                continue
            case_name = f"{case.full_name} on {case.system}:{case.partition} with {case.environ}{of_run}"[
                :_LONGEST_NAME
            ]
            trial = _trial(case, case_name, result.left_out)
            if trial is None:
                continue
            test, cluster = _base_name(case), f"{case.system}:{case.partition}"
            described_set = described(f"{test} on {cluster}", test, _TOOL, cluster, source)
            sets.setdefault((test, cluster), described_set)["trials"].append(trial)
    result.sets = list(sets.values())
    for part in result.sets:
        keep_apart(part["trials"])
    if report.restored_cases:
        cases = plural(len(report.restored_cases), "case")
        result.left_out.append(
            f"{cases} of an earlier session, which ReFrame restored: import the report of that session"
        )
    return result


def _base_name(case: _Case) -> str:
    return case.full_name.partition(_PAIR)[0].strip() or case.name


def _trial(case: _Case, case_name: str, left_out: list[str]) -> dict[str, Any] | None:
    """Return the case as a trial, or None with the reason in ``left_out``."""
    if why := _why_not(case):
        left_out.append(f"{case_name}: {why}")
        return None
    figures: dict[str, float] = {}
    for name, entry in (case.perfvalues or {}).items():
        try:
            _keep(figures, name.rpartition(":")[2], entry)
        except ValueError as error:
            left_out.append(f"{case_name}: the figure {name.rpartition(':')[2][:80]}: {error}")
    if case.time_run is not None:
        try:
            keep_figure(figures, _TOOL, "run_stage", case.time_run, "s")
        except ValueError as error:
            left_out.append(f"{case_name}: time_run: {error}")
    if not figures:
        left_out.append(f"{case_name}: no figure of it can be read")
        return None
    case_parameters = {
        f"{_TOOL}_{name}" if name == "environ" else name: value for name, value in _own_parameters(case).items()
    }
    varied = {"environ": case.environ, **case_parameters}
    counts = {"hosts": case.hosts, "ranks": case.ranks}
    return {
        "parameters": {**parameters(varied, _TOOL), **counts},
        "figures": figures,
        "command": [case.executable, *case.executable_opts] if case.executable else [],
        "ended_at": moment(case.job_completion_time_unix),
    }


def _why_not(case: _Case) -> str:
    reason = (case.fail_reason or "it does not say why").partition("\n")[0][:200]
    if case.fixture:
        return "it is a fixture of other tests"
    if case.result == "fail" and case.fail_phase != "performance":
        return f"it failed in the phase {case.fail_phase or 'that it does not name'}: {reason}"
    if case.result not in ("pass", "fail", "xpass", "xfail"):
        return f"it was not run to its end ({case.result[:40]})"
    if case.hosts is None:
        return "it says neither its nodes nor how many tasks there are on each"
    if case.ranks is None:
        return "it says neither how many tasks it had nor how many there were on each node"
    return ""


def _keep(figures: dict[str, float], name: str, entry: list[Any]) -> None:
    """Add a performance variable (value, reference, lower, upper, unit, ...)."""
    if len(entry) < 5 or not isinstance(entry[4], str | None):
        raise ValueError("its value and unit are not in ReFrame's positions")
    if isinstance(entry[0], str):
        raise ValueError(f"{entry[0][:40]!r} is text, and ReFrame writes numbers")
    keep_figure(figures, _TOOL, name, entry[0], entry[4] or "")


def _own_parameters(case: _Case) -> dict[str, Any]:
    """Return the test's parameters: the display name has them as ``%NAME=VALUE``."""
    found_parameters: dict[str, Any] = {}
    for pair in case.full_name.split(_PAIR)[1:]:
        name, equals, text = pair.partition("=")
        if equals:
            typed = (case.model_extra or {}).get(name)
            found_parameters[name] = typed if isinstance(typed, int | float | str) and str(typed) == text else text
    return found_parameters
