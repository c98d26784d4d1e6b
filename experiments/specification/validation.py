"""Validator of specifications for browser, YAML, REST and command line.

``parse(data)`` turns a plain mapping into an ``ExperimentSpec`` or raises ``InvalidSpec`` with every error at its field;
``parse_yaml(text)`` adds the line numbers. ``ExperimentSpec.to_dict()`` gives a mapping that parses to the same specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from pydantic import ValidationError

from experiments import workloads
from experiments.common.storable import problems as problems_of_plain_data
from experiments.errors import FieldError, InvalidSpec, alternatives
from experiments.metrics import why_not_deciding
from experiments.specification import design, network_study
from experiments.specification.fields import ExperimentSpec
from experiments.specification.goal import ANSWERED
from experiments.specification.parameters import (
    CLUSTER_PARAMETERS,
    LAUNCH_PARAMETERS,
    LINK_PARAMETERS,
    MOST_ERRORS,
    Capture,
    Link,
    canonical,
    is_of_launch,
    is_text,
    refusal,
)
from experiments.specification.yaml_lines import YamlDocument
from experiments.workloads import WorkloadDefinition
from experiments.workloads.template import text_paths

__all__ = ["MAX_TRIALS", "Capture", "ExperimentSpec", "Link", "parse", "parse_yaml", "restore"]

MAX_TRIALS: Final = 10_000


def parse(data: Any, *, max_trials: int = MAX_TRIALS) -> ExperimentSpec:
    """Return the validated specification. Raise InvalidSpec with 100 errors at most."""
    if not isinstance(data, Mapping):
        raise InvalidSpec([FieldError("", "a specification is a mapping of fields, such as name: and workload:")])
    odd = list(islice(problems_of_plain_data(data), MOST_ERRORS))
    if odd:
        raise InvalidSpec(odd)
    written = network_study.expanded(data)
    try:
        spec = ExperimentSpec.model_validate(written)
    except ValidationError as error:
        refused = refusal(error).errors
        raise InvalidSpec([*refused, *_wrong_values(written, refused)][:MOST_ERRORS]) from None
    # In this order: a misspelt placeholder of the program is reported as such, not as an unused one.
    errors = list(islice(_check(spec), MOST_ERRORS))
    errors = errors or design.problems(spec, max_trials=max_trials) or list(_check_use(spec))
    if errors:
        raise InvalidSpec(errors)
    return spec


def restore(stored: Mapping[str, Any]) -> ExperimentSpec:
    """Return a stored specification, without judging its design again.

    The limit of trials may have been lowered since, and expanding ten thousand configurations takes seconds. Raise InvalidSpec if another
    version of Rankwire wrote it, whose fields are not known here.
    """
    try:
        return ExperimentSpec.model_validate(in_todays_words(stored))
    except ValidationError as error:
        raise refusal(error) from None


def in_todays_words(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored specification, in which ``control: true`` meant one control run."""
    return {**stored, "control": 1} if stored.get("control") is True else dict(stored)


def parse_yaml(text: str, *, max_trials: int = MAX_TRIALS) -> ExperimentSpec:
    """Return the specification in YAML or JSON text. Errors carry their lines."""
    document = YamlDocument(text)
    if document.data is None:
        raise InvalidSpec(
            [FieldError("", "is empty: paste YAML or open a file, with fields such as name: and workload:")]
        )
    try:
        if altered := list(document.altered(*_texts(document.data))):
            raise InvalidSpec(altered)
        return parse(document.data, max_trials=max_trials)
    except InvalidSpec as error:
        raise InvalidSpec(
            FieldError(e.path, e.message, e.line or document.line(e.path)) for e in error.errors
        ) from None


def _texts(data: Any) -> Iterator[str]:
    """Yield the paths of texts among the parameters of unchecked data."""
    if not isinstance(data, dict) or not isinstance(workload := data.get("workload"), str):
        return
    parameters, sweep = (p if isinstance(p := data.get(part), dict) else {} for part in ("parameters", "sweep"))
    for part, fields in (("parameters", parameters), ("sweep", sweep)):
        yield from (f"{part}.{name}" for name in fields if is_text(workload, name, parameters))
    if workload == "command":
        yield from (f"parameters.{path}" for path in text_paths(parameters))


def _wrong_values(data: Mapping[str, Any], refused: Sequence[FieldError]) -> Iterator[FieldError]:
    """Yield the wrong values of parameters if only other fields were refused."""
    wrong = {error.path.partition(".")[0] for error in refused}
    if wrong & {"workload", "parameters", "sweep", "zip"}:
        return
    values = {name: data[name] for name in ("workload", "parameters", "sweep", "zip") if name in data}
    try:
        spec = ExperimentSpec.model_validate({"name": "without the refused fields", **values})
    except ValidationError:  # their errors are beyond the reported ones
        return
    workload = workloads.find(spec.workload)
    if workload is not None:
        yield from islice(_check_values(spec, workload), MOST_ERRORS)


def _check(spec: ExperimentSpec) -> Iterator[FieldError]:
    """Yield the errors of names and values, before any configuration is made."""
    workload = workloads.find(spec.workload)
    if workload is None:
        slugs = [w.slug for w in workloads.registry()]
        yield FieldError("workload", f"unknown workload {spec.workload!r}{alternatives(spec.workload, slugs)}")
        return
    yield from _check_values(spec, workload)
    yield from _check_zip(spec)
    yield from _check_scaling(spec)
    yield from _check_repetitions(spec)
    yield from _check_explored(spec, workload)
    yield from _check_optimised(spec, workload.bind(spec.parameters))
    for name in LAUNCH_PARAMETERS:
        if getattr(spec, name) == ExperimentSpec.model_fields[name].default:
            continue
        if not is_of_launch(spec.workload, name, spec.parameters):
            yield FieldError(name, f"the workload has a parameter {name} of its own; rename that first")
        elif name in spec.sweep:
            yield FieldError(name, f"is under sweep: too; {name} is either constant or swept")
    if spec.deciding is not None and (wrong_metric := why_not_deciding(spec.deciding, workload.bind(spec.parameters))):
        yield FieldError("deciding", wrong_metric)
    try:
        spec.condition()
    except ValueError as error:
        yield FieldError("where", str(error))


_CONSTANT: Final = (
    "defines the workload itself and cannot be swept: start an experiment for each value and compare them"
)


def _check_values(spec: ExperimentSpec, workload: WorkloadDefinition) -> Iterator[FieldError]:
    """Yield the errors of constants and swept values."""
    known_names = spec.known_parameters()
    for name, value in spec.parameters.items():
        yield from _check_value(spec, known_names, f"parameters.{name}", name, [value])
        if name in LINK_PARAMETERS:
            yield FieldError(f"parameters.{name}", "a constant of the link belongs under link:, not under parameters:")
        elif is_of_launch(spec.workload, name, spec.parameters):
            yield FieldError(f"parameters.{name}", f"is a field of its own: write {name}: beside parameters:")
    for name in spec.sweep:
        if name in spec.parameters:
            yield FieldError(f"sweep.{name}", "is under parameters: too; a parameter is either constant or swept")
        if name in workload.constants:
            yield FieldError(f"sweep.{name}", _CONSTANT)
            continue
        try:
            values = spec.swept(name)
        except ValueError as error:
            yield FieldError(f"sweep.{name}", str(error))
            continue
        wrong = list(_check_value(spec, known_names, f"sweep.{name}", name, values))
        in_group = any(name in group for group in spec.zip)
        yield from wrong or ([] if in_group else _check_distinct(spec, name, values))


def _check_repetitions(spec: ExperimentSpec) -> Iterator[FieldError]:
    if spec.goal is None and not isinstance(spec.repetitions, int):
        yield FieldError("repetitions", "must be a number: a range is for experiments with a goal")
    if spec.goal is not None and spec.at_least < 2:
        yield FieldError("repetitions", "must be at least 2 for a goal: one trial shows no scatter")


def _check_explored(spec: ExperimentSpec, workload: WorkloadDefinition) -> Iterator[FieldError]:
    if not spec.explores:
        return
    if spec.goal is None or spec.goal.until != ANSWERED:
        yield FieldError("sweep.hosts", f"explore needs a goal with until: {ANSWERED}; list the sizes otherwise")
    if len(spec.sweep) > 1 or spec.scaling != "strong" or workload.work_grows:
        yield FieldError("sweep.hosts", "explore is for strong scaling, with hosts as the only swept parameter")
    if spec.warmups or spec.controls or spec.ideal:
        yield FieldError("sweep.hosts", "explore adds measured trials only: leave out warmups, control and ideal")


def _check_optimised(spec: ExperimentSpec, workload: WorkloadDefinition) -> Iterator[FieldError]:
    if not spec.optimised:
        return
    if wrong := why_not_deciding(spec.optimised, workload):
        yield FieldError("goal.optimise", wrong)
    if spec.deciding is not None:
        yield FieldError("deciding", "the goal's optimise decides; leave this out")
    if not spec.sweep or spec.zip or spec.scaling != "strong":
        yield FieldError("sweep", "optimise searches values of parameters under sweep, without zip, for strong scaling")
    if spec.warmups or spec.controls or spec.ideal:
        yield FieldError("goal.optimise", "adds measured trials only: leave out warmups, control and ideal")


def _check_value(
    spec: ExperimentSpec, known_names: set[str], path: str, name: str, values: list[Any]
) -> Iterator[FieldError]:
    if name not in known_names:
        title = workloads.get(spec.workload).title
        yield FieldError(path, f"unknown parameter {name!r} of {title}{alternatives(name, sorted(known_names))}")
        return
    for value in values:
        try:
            canonical(spec.workload, name, value, spec.parameters)
        except ValueError as error:
            yield FieldError(path, str(error))


def _check_use(spec: ExperimentSpec) -> Iterator[FieldError]:
    """Yield values that reach nothing of the run."""
    unused = workloads.get(spec.workload, spec.parameters).unused
    for part, values in (("parameters", spec.parameters), ("sweep", spec.sweep)):
        for name in unused.intersection(values):
            yield FieldError(f"{part}.{name}", f"changes nothing: neither program nor inputs have {{{name}}}")


def _check_distinct(spec: ExperimentSpec, name: str, values: list[Any]) -> Iterator[FieldError]:
    """Yield values that mean the same: 1 Gbit/s and 1000 Mbit/s."""
    canonical_values = [canonical(spec.workload, name, value, spec.parameters) for value in values]
    for index, value in enumerate(canonical_values):
        if value in canonical_values[:index]:
            first, again = values[canonical_values.index(value)], values[index]
            same = (
                f"{first!r} is given more than once"
                if first == again
                else f"{first!r} and {again!r} are the same value"
            )
            yield FieldError(f"sweep.{name}", same)
            return


def _check_zip(spec: ExperimentSpec) -> Iterator[FieldError]:
    used: set[str] = set()
    for position, group in enumerate(spec.zip):
        path = f"zip.{position}"
        missing = [name for name in group if name not in spec.sweep]
        if missing:
            yield FieldError(path, f"{missing[0]!r} is not swept")
        elif len(group) < 2 or used & set(group) or len(set(group)) < len(group):
            yield FieldError(path, "needs two or more swept parameters, each in one group only")
        else:
            try:
                lengths = {name: len(spec.swept(name)) for name in group}
            except ValueError:
                continue  # reported at the swept parameter itself
            if len(set(lengths.values())) > 1:
                counts = ", ".join(f"{name} has {count}" for name, count in lengths.items())
                yield FieldError(path, f"parameters that advance together need equally many values: {counts}")
            else:
                yield from _check_rows(spec, group, path)
        used |= set(group)


def _check_rows(spec: ExperimentSpec, group: tuple[str, ...], path: str) -> Iterator[FieldError]:
    """Yield a repeated row of a group; single values may repeat, as in a ladder."""
    known_names = spec.known_parameters()
    if not known_names.issuperset(group):
        return  # reported at the swept parameter itself
    try:
        swept = [[canonical(spec.workload, name, v, spec.parameters) for v in spec.swept(name)] for name in group]
    except ValueError:
        return
    rows = list(zip(*swept, strict=True))
    for index, row in enumerate(rows):
        if row in rows[:index]:
            yield FieldError(path, f"steps {rows.index(row) + 1} and {index + 1} are the same")
            return


def _check_scaling(spec: ExperimentSpec) -> Iterator[FieldError]:
    """Yield wrong names; ``design.problems`` checks that the parameter grows."""
    grown = spec.grows_with_hosts
    if spec.scaling == "weak" and grown is None:
        yield FieldError("grows_with_hosts", "weak scaling must name the parameter that grows with the hosts")
    if grown is None:
        return
    if grown not in spec.sweep:
        yield FieldError("grows_with_hosts", f"{grown!r} is not swept")
    elif spec.scaling == "weak" and grown in (*CLUSTER_PARAMETERS, *LAUNCH_PARAMETERS, *LINK_PARAMETERS):
        yield FieldError(
            "grows_with_hosts", f"{grown!r} is not a size of the problem; name a parameter of the workload"
        )
    elif spec.scaling == "weak" and "hosts" not in spec.sweep:
        yield FieldError("sweep", f"weak scaling needs several numbers of hosts: sweep hosts together with {grown}")
