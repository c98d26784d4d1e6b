"""Importer of results of Ramble and Benchpark.

They are written by ``ramble workspace analyze --formats json``. The experiments of a workload are one experiment here; the variables
that differ are its parameters. Figures of a context have its name before theirs. Of an experiment with repeats each repeat is a trial;
Ramble's statistics of them are not imported.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, Final

from pydantic import Field

from experiments.common import budget
from experiments.errors import BadBundle
from experiments.exchange.importers.report import (
    RESERVED,
    Lenient,
    ToolReport,
    checked,
    described,
    keep_apart,
    keep_figure,
    parameters,
    usable,
)
from experiments.exchange.record_schemas import Items
from experiments.exchange.table import printed_number

_TOOL: Final = "ramble"
_DONE: Final = "SUCCESS"
_NOT_VARIED: Final = re.compile(
    r".*(_dir|_path|_name|_namespace|_hash|_status|_file|_index)|(n_nodes|n_ranks|processes_per_node|command|batch_submit|repeat_index|experiment_.*|execute_.*)"
)
_LONGEST: Final = 80


class _Fom(Lenient):
    name: str
    value: Any
    units: str = ""
    origin_type: str = ""


class _Context(Lenient):
    name: str
    display_name: str = ""
    foms: Items[_Fom]


class _Experiment(Lenient):
    name: str
    status: str = Field(alias="RAMBLE_STATUS")
    application_name: str
    workload_name: str
    variables: dict[str, Any] = Field(alias="RAMBLE_VARIABLES")
    contexts: Items[_Context] = Field([], alias="CONTEXTS")
    repeats: Any = Field(0, alias="N_REPEATS")
    """The number of repeats in the experiment that sums them up, else 0."""

    def count(self, name: str) -> int | None:
        """Return a count, which Ramble writes as a number or a text, in one of two places."""
        text = str((self.model_extra or {}).get(name, self.variables.get(name, "")))
        return int(text) if re.fullmatch(r"[1-9][0-9]{0,5}", text) else None


class _Results(Lenient):
    experiments: Items[dict[str, Any]]
    """Checked one by one: an odd one is excluded, and the others are imported."""
    workspace_name: str = ""


def recognises(data: dict[str, Any]) -> bool:
    listed = data.get("experiments")
    return isinstance(listed, list) and (
        "workspace_name" in data or any("RAMBLE_STATUS" in e for e in listed if isinstance(e, dict))
    )


def read(data: dict[str, Any]) -> ToolReport:
    """Return the experiments that succeeded as trials. Raise BadBundle."""
    results = checked(_Results, data, "Ramble")
    if not results.experiments:
        raise BadBundle("There is no experiment in these results of Ramble.")
    report = ToolReport("Ramble", [])
    grouped: dict[str, list[_Experiment]] = defaultdict(list)
    for ramble_experiment in results.experiments:
        experiment = usable(
            _Experiment, ramble_experiment, str(ramble_experiment.get("name", "an experiment")), report.left_out
        )
        if experiment is None:
            continue
        if why := _why_not(experiment):
            report.left_out.append(f"{experiment.name[:120]}: {why}")
        else:
            grouped[f"{experiment.application_name}.{experiment.workload_name}"].append(experiment)
    for name, experiments in grouped.items():
        varied = _varied(experiments)
        trials = [
            trial for experiment in experiments if (trial := _trial(experiment, varied, report.left_out)) is not None
        ]
        if trials:
            keep_apart(trials)
            workspace = results.workspace_name
            full_name = f"{name}{f' of {workspace}' if workspace else ''}"
            source = f"Ramble{f', workspace {workspace}' if workspace else ''}"
            report.sets.append(described(full_name, name, _TOOL, workspace or "Ramble", source) | {"trials": trials})
    return report


def _why_not(experiment: _Experiment) -> str:
    if experiment.status != _DONE:
        return f"its status is {experiment.status[:40]}"
    if experiment.repeats not in (0, "0", None) or any(
        fom.origin_type.startswith("summary") for context in experiment.contexts for fom in context.foms
    ):
        return "it holds the statistics of repeats, which are imported one by one"
    if experiment.count("n_nodes") is None:
        return "it does not say on how many nodes it ran"
    return ""


def _varied(experiments: list[_Experiment]) -> list[str]:
    """Return the names of the variables that differ, without places and names."""
    names = dict.fromkeys(name for experiment in experiments for name in experiment.variables)
    return [
        name
        for name in names
        if not _NOT_VARIED.fullmatch(name)
        and name not in RESERVED
        and len({_without_place(experiment, name) for experiment in experiments}) > 1
    ]


def _without_place(experiment: _Experiment, name: str) -> str:
    """Return a variable without the name and directory of its experiment."""
    budget.check()
    text = str(experiment.variables.get(name))
    for directory in (str(experiment.variables.get("experiment_run_dir", "")), experiment.name):
        text = text.replace(directory, "") if directory else text
    return text


def _trial(experiment: _Experiment, varied: list[str], left_out: list[str]) -> dict[str, Any] | None:
    figures: dict[str, float] = {}
    for context in experiment.contexts:
        for fom in context.foms:
            name = fom.name if context.name == "null" else f"{context.display_name or context.name} {fom.name}"
            try:
                keep_figure(figures, _TOOL, name, fom.value, fom.units)
            except ValueError as error:
                left_out.append(f"{experiment.name[:120]}: the figure {name[:_LONGEST]}: {error}")
    if not figures:
        left_out.append(f"{experiment.name[:120]}: no figure of it can be read")
        return None
    varying = {name: _plain(experiment.variables[name]) for name in varied if name in experiment.variables}
    ranks = experiment.count("n_ranks")
    counts = {"hosts": experiment.count("n_nodes"), **({"ranks": ranks} if ranks else {})}
    return {"parameters": {**parameters(varying, _TOOL), **counts}, "figures": figures}


def _plain(value: Any) -> Any:
    """Return the number of a variable, or the variable: 4.10 and 007 stay text."""
    number = printed_number(value) if isinstance(value, str) else None
    return value if number is None else number
