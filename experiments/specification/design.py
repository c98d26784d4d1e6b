"""From a specification to its configurations and ordered trials."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import ValidationError

from analysis.conclusions.exploring import first_sizes
from analysis.conclusions.searching import first_proposals
from analysis.numbers import plural
from analysis.search import Space
from experiments import workloads
from experiments.common import budget
from experiments.errors import FieldError, InvalidSpec
from experiments.specification.fields import ExperimentSpec
from experiments.specification.parameters import (
    CLUSTER_PARAMETERS,
    LAUNCH_PARAMETERS,
    LINK_PARAMETERS,
    MAX_RANKS,
    RANKS,
    Link,
    canonical,
    is_of_launch,
    sentence,
)
from experiments.specification.transport import AS_CLUSTER

ETHERNET_HEADER_BYTES = 14
MOST_WORK: Final = 2_000_000
"""Nodes of a condition that are evaluated before a specification is judged too large: about a second."""
Kind = Literal["warmup", "measured", "control", "ideal", "search"]

_FIRST_LINK_PARAMETERS: Final = frozenset(("bandwidth", "delay", "jitter", "loss", "mtu"))
# Those that came when configurations were already stored: at its default each means the network that ran before it existed.
_LATER_DEFAULTS: Final = {
    f"link.{name}": field.default for name, field in Link.model_fields.items() if name not in _FIRST_LINK_PARAMETERS
}


@dataclass(frozen=True, slots=True)
class ConfigurationPlan:
    """One point of the sweep, with every parameter in base units."""

    parameters: Mapping[str, Any]
    hash: str

    @property
    def hosts(self) -> int:
        return int(self.parameters["hosts"])

    @property
    def ranks(self) -> int:
        return ranks_of(self.parameters)


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """One run; ``repetition`` counts from 1 within its kind."""

    configuration: int
    kind: Kind
    repetition: int


@dataclass(frozen=True, slots=True)
class Design:
    """All configurations, and all trials in running order."""

    configurations: tuple[ConfigurationPlan, ...]
    trials: tuple[TrialPlan, ...]


def expand(spec: ExperimentSpec, chosen: Iterable[Mapping[str, Any]] = ()) -> Design:
    """Return the design of a checked specification.

    ``chosen`` are parameters of points that rounds added to a design: those of this specification stay in it.
    """
    plans = [_plan(spec, values) for values in _first_round(spec)]
    if spec.optimised:
        hashes, space, constants = {plan.hash for plan in plans}, space_of(spec), _constants(spec)
        for parameters in chosen:
            settings = {name: parameters.get(name) for name in space.values}
            plan = _plan(spec, {**constants, **settings})
            is_of_space = all(value in space.values[name] for name, value in settings.items())
            is_same = plan.hash == configuration_hash(spec.workload, parameters)
            if is_of_space and is_same and plan.hash not in hashes and space.is_possible(settings):
                hashes.add(plan.hash)
                plans.append(plan)
        return Design(tuple(plans), tuple(TrialPlan(index, "search", 1) for index in range(len(plans))))
    if spec.explores:
        allowed, first = set(allowed_sizes(spec)), {plan.hosts for plan in plans}
        added = {configuration_hash(spec.workload, p): p["hosts"] for p in chosen if p["hosts"] in allowed - first}
        more = [_plan(spec, values) for values in _points(spec, sizes=sorted(added.values()))]
        plans = sorted([*plans, *(plan for plan in more if plan.hash in added)], key=lambda plan: plan.hosts)
    return Design(tuple(plans), tuple(_order(spec, len(plans))))


def first_point(spec: ExperimentSpec) -> Mapping[str, Any]:
    """Return the parameters of the first configuration, without making the others."""
    return next(_points(spec))


def allowed_sizes(spec: ExperimentSpec) -> list[int]:
    """Return the numbers of hosts that rounds may choose; empty if listed."""
    if not spec.explores:
        return []
    return [values["hosts"] for values in _points(spec) if next(_joint_problems(spec, values), None) is None]


def space_of(spec: ExperimentSpec) -> Space:
    """Return the values among which a goal searches the best settings."""
    constants, keep = _constants(spec), spec.condition()

    def is_possible(settings: Mapping[str, Any]) -> bool:
        budget.check()
        values = {**constants, **settings}
        try:
            is_kept = keep is None or keep(values | {RANKS: ranks_of(values)})
        except ValueError as error:
            raise InvalidSpec([FieldError("where", str(error))]) from None
        return is_kept and next(_joint_problems(spec, values), None) is None

    return Space(spec.values(), is_possible)


def start_of(spec: ExperimentSpec) -> dict[str, Any]:
    """Return the starting settings of a search: defaults, or the first values."""
    defaults = _constants(spec)
    return {n: defaults[n] if defaults.get(n) in values else values[0] for n, values in spec.values().items()}


def _first_round(spec: ExperimentSpec, *, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the parameters of the points of the first round."""
    if spec.optimised:
        constants = _constants(spec)
        proposals = first_proposals(space_of(spec), start_of(spec), seed=spec.seed)
        return iter([{**constants, **settings} for settings in proposals])
    if not spec.explores:
        return _points(spec, limit=limit)
    # A range without two possible sizes has its errors at its ends.
    allowed = allowed_sizes(spec)
    return _points(spec, sizes=first_sizes(allowed) if len(allowed) > 1 else [v["hosts"] for v in _points(spec)][:2])


def problems(spec: ExperimentSpec, *, max_trials: int) -> list[FieldError]:
    """Return the errors of the configurations: too many, none, or contradictions."""
    per_configuration = 1 if spec.optimised else spec.at_least + spec.warmups + spec.controls + spec.ideal
    too_many = FieldError(
        "sweep", f"more than the limit of {max_trials} trials; take fewer values or fewer repetitions"
    )
    errors: list[FieldError] = []
    count = 0
    sizes: dict[int, list[Any]] = {}
    try:
        for values in _first_round(spec, limit=20 * max_trials):
            count += 1
            if count * per_configuration > max_trials:
                return [too_many]
            errors.extend(e for e in _joint_problems(spec, values) if e not in errors)
            if spec.scaling == "weak" and spec.grows_with_hosts is not None:
                sizes.setdefault(values["hosts"], []).append(values[spec.grows_with_hosts])
            if len(errors) > 20:
                break
    except InvalidSpec as error:
        return list(error.errors)
    if not count:
        return [FieldError("where", "leaves no configuration")]
    if spec.explores and count < 2:
        errors.append(FieldError("sweep.hosts", "leaves one size; rounds choose between at least two"))
    if spec.optimised and not errors:
        errors += _search_problems(spec)
    most = None if spec.goal is None else spec.goal.budget.trials
    if most is not None and count * per_configuration > most:
        errors.append(FieldError("goal.budget.trials", f"round 1 alone has {count * per_configuration} trials"))
    elif most is not None and spec.optimised and count + 2 * spec.at_least > most:
        text = f"round 1 and {plural(spec.at_least, 'repetition')} of the start and a candidate"
        errors.append(FieldError("goal.budget.trials", f"{text} are {count + 2 * spec.at_least} trials"))
    return errors or (_growth_problems(str(spec.grows_with_hosts), sizes) if sizes else [])


def _search_problems(spec: ExperimentSpec) -> list[FieldError]:
    """Return why a search cannot begin at the starting settings."""
    space, start = space_of(spec), start_of(spec)
    if space.is_possible(start):
        return [] if space.size > 1 else [FieldError("sweep", "leaves one combination; a search needs at least two")]
    return [FieldError("where", f"excludes the starting settings: {', '.join(f'{n} {v}' for n, v in start.items())}")]


def _growth_problems(grown: str, sizes: Mapping[int, Sequence[Any]]) -> list[FieldError]:
    """Return why ``sizes``, values of ``grown`` by hosts, are not weak scaling."""

    def wrong(message: str) -> list[FieldError]:
        return [FieldError("grows_with_hosts", message)]

    if len(sizes) < 2:
        return [FieldError("sweep.hosts", "weak scaling needs at least two numbers of hosts")]
    before: tuple[str, Any] | None = None
    for hosts, values in sorted(sizes.items()):
        at = plural(hosts, "host")
        other = next((value for value in values if value != values[0]), None)
        if other is not None:
            both = f"{values[0]} and {other}"
            return wrong(f"{grown} is {both} at {at}; let it advance with the hosts: zip: [[hosts, {grown}]]")
        if isinstance(values[0], bool) or not isinstance(values[0], int | float):
            return wrong(f"{grown} is {values[0]!r} at {at}; only a number can grow")
        if before is not None and values[0] <= before[1]:
            return wrong(f"{grown} does not grow: it is {before[1]} at {before[0]} and {values[0]} at {at}")
        before = at, values[0]
    return []


def configuration_hash(workload: str, parameters: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of a workload and its parameters; equal numbers match.

    A parameter added later stays out at its default, so that a stored configuration keeps its hash and its trials. Parameters that only
    read the output stay out too: other figures of the same run are not another run.
    """
    definition = workloads.find(workload, parameters)
    later = {**_LATER_DEFAULTS, **({} if definition is None else definition.later_defaults)}
    ignored = frozenset() if definition is None else definition.reading
    relevant = {
        name: _plain(value)
        for name, value in parameters.items()
        if name not in ignored and (name not in later or value != later[name])
    }
    canonical_form = {"workload": workload, "parameters": relevant}
    return hashlib.sha256(json.dumps(canonical_form, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def workload_parameters(workload: str, parameters: Mapping[str, Any]) -> Any:
    """Return the workload's own typed parameters out of a configuration's."""
    model = workloads.get(workload, parameters).parameters_type
    return model.model_validate({name: parameters[name] for name in model.model_fields if name in parameters})


def ranks_of(parameters: Mapping[str, Any]) -> int:
    """Return the number of ranks of a configuration."""
    return int(parameters["hosts"]) * int(parameters["ranks_per_host"])


def pinned(spec: ExperimentSpec) -> ExperimentSpec:
    """Return a specification that holds the version of its registered program."""
    workload = workloads.get(spec.workload, spec.parameters)
    fields = workload.parameters_type.model_fields
    missing = {name: fields[name].default for name in workload.pinned if name not in spec.parameters}
    return spec.model_copy(update={"parameters": {**spec.parameters, **missing}}) if missing else spec


def threads_of(workload: str, parameters: Mapping[str, Any]) -> int:
    """Return the threads of each rank of a configuration; 1 if they are not known."""
    definition = workloads.find(workload, parameters)
    try:
        return 1 if definition is None else definition.threads(workload_parameters(workload, parameters))
    except ValidationError:
        return 1


def launch_of(workload: str, parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return what a configuration chooses of the launch; the cluster has the rest."""
    return {
        n: str(parameters[n]) for n in LAUNCH_PARAMETERS if n in parameters and is_of_launch(workload, n, parameters)
    }


def link_of(parameters: Mapping[str, Any]) -> Link:
    """Return the link of a configuration; parameters that it lacks are defaults."""
    fields = {name.removeprefix("link."): parameters[name] for name in LINK_PARAMETERS if name in parameters}
    return Link.model_validate(fields)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _points(
    spec: ExperimentSpec, *, limit: int | None = None, sizes: Sequence[int] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the parameters of every kept point, the last one changing fastest.

    ``sizes`` are numbers of hosts in place of the swept ones.
    """
    swept = spec.values() if sizes is None else {**spec.values(), "hosts": list(sizes)}
    keep = spec.condition()
    if keep is not None and limit is not None:
        limit = min(limit, MOST_WORK // keep.size)
    constants = _constants(spec)
    axes: list[list[dict[str, Any]]] = []
    grouped = {name: group for group in spec.zip for name in group}
    for name, values in swept.items():
        group = grouped.get(name)
        if group is None:
            axes.append([{name: value} for value in values])
        elif name == group[0]:
            rows = zip(*(swept[member] for member in group), strict=True)
            axes.append([dict(zip(group, row, strict=True)) for row in rows])
    for seen, point in enumerate(itertools.product(*axes)):
        budget.check()
        if limit is not None and seen >= limit:
            shorter = "" if keep is None or limit < MOST_WORK // keep.size else ", or a shorter condition"
            raise InvalidSpec([FieldError("sweep", f"more than {limit} combinations; take fewer values{shorter}")])
        values_here = {**constants, **{name: value for part in point for name, value in part.items()}}
        try:
            if keep is None or keep(values_here | {RANKS: values_here["hosts"] * values_here["ranks_per_host"]}):
                yield values_here
        except ValueError as error:
            raise InvalidSpec([FieldError("where", str(error))]) from None


def _constants(spec: ExperimentSpec) -> dict[str, Any]:
    """Return defaults and constants of all parameters, in base units."""
    defaults = workloads.get(spec.workload, spec.parameters).parameters_type.model_construct().model_dump()
    cluster = {name: low for name, (low, _) in CLUSTER_PARAMETERS.items()}
    link = {f"link.{name}": value for name, value in spec.link.model_dump().items()}
    constants = {
        name: canonical(spec.workload, name, value, spec.parameters) for name, value in spec.parameters.items()
    }
    # Left out unless the specification chooses: configurations that leave it to the cluster keep their hash.
    launch = {name: value for name in LAUNCH_PARAMETERS if (value := getattr(spec, name)) != AS_CLUSTER}
    return {**cluster, **defaults, **link, **launch, **constants}


def most_hosts(spec: ExperimentSpec, plan: Design) -> tuple[int, str]:
    """Return the largest number of hosts of a trial, and the field that requests it."""
    field = "sweep.hosts" if "hosts" in spec.sweep else "parameters.hosts"
    sizes = sorted(spec.values().get("hosts", [])) if spec.optimised else allowed_sizes(spec)
    return max([*(point.hosts for point in plan.configurations), *sizes[-1:]]), field


def most_ranks(spec: ExperimentSpec, plan: Design) -> tuple[int, int, str]:
    """Return hosts and ranks of the largest trial, and the field that requests them."""
    largest = max(plan.configurations, key=lambda point: point.ranks)
    if sizes := allowed_sizes(spec):
        return sizes[-1], sizes[-1] * int(largest.parameters["ranks_per_host"]), "sweep.hosts"
    field = "sweep.ranks_per_host" if "ranks_per_host" in spec.sweep else "parameters.ranks_per_host"
    return largest.hosts, largest.ranks, field


def _joint_problems(spec: ExperimentSpec, values: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield errors of values that are each allowed but do not go together."""
    if values["link.jitter"] > values["link.delay"]:
        swept = next((name for name in ("link.jitter", "link.delay") if name in spec.sweep), None)
        path = f"sweep.{swept}" if swept else "link.jitter"
        yield FieldError(path, "jitter cannot be larger than the delay it varies")
    yield from _link_problems(spec, values)
    ranks = values["hosts"] * values["ranks_per_host"]
    if ranks > MAX_RANKS:
        yield FieldError(
            "sweep.hosts" if "hosts" in spec.sweep else "parameters.hosts", f"{ranks} ranks; the limit is {MAX_RANKS}"
        )
    try:
        typed = workload_parameters(spec.workload, values)
        workloads.get(spec.workload, values).check(typed, ranks=ranks)
    except workloads.Mismatch as error:
        name = error.parameter
        if name == "hosts" and name not in spec.sweep and "ranks_per_host" in spec.sweep:
            name = "ranks_per_host"  # its values make too few or too many ranks
        yield FieldError(f"{'sweep' if name in spec.sweep else 'parameters'}.{name}", str(error))
    except ValidationError as error:
        for problem in error.errors():
            name = ".".join(map(str, problem["loc"]))
            yield FieldError(f"{'sweep' if name in spec.sweep else 'parameters'}.{name}", sentence(problem))


def _link_problems(spec: ExperimentSpec, values: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield errors of an impossible link, at the parameter that is easiest to change."""

    def at(name: str) -> str:
        return f"sweep.link.{name}" if f"link.{name}" in spec.sweep else f"link.{name}"

    loss, burst = values["link.loss"], values["link.loss_burst"]
    if loss and burst > 1 and loss / (1 - loss) / burst > 1:
        yield FieldError(
            at("loss_burst"), "this much loss needs longer bursts: between two of them a packet must arrive"
        )
    queue = values["link.queue"]
    if queue is not None and queue < values["link.mtu"] + ETHERNET_HEADER_BYTES:
        yield FieldError(at("queue"), "a queue must hold at least one packet of the MTU")
    if queue is not None and values["link.bandwidth"] is None and not values["link.rates"]:
        yield FieldError(at("queue"), "without a bandwidth no queue builds up; give one")
    if values["link.topology"] == "two sites" and values["hosts"] < 2 and "hosts" not in spec.sweep:
        yield FieldError(at("topology"), "two sites need at least two hosts")
    if values["link.emulator"] == "wirefilter":
        yield FieldError(at("emulator"), "wirefilter is no longer supported: choose relay")


def _plan(spec: ExperimentSpec, values: Mapping[str, Any]) -> ConfigurationPlan:
    return ConfigurationPlan(dict(values), configuration_hash(spec.workload, values))


def _order(spec: ExperimentSpec, configurations: int) -> Iterator[TrialPlan]:
    """Yield the trials in running order.

    Interleaved rounds alternate their direction: otherwise the last configuration always runs later than the first, and a drift would
    look like a difference.
    """
    kinds: list[tuple[Kind, int]] = [("warmup", k) for k in range(1, spec.warmups + 1)]
    kinds += _rounds(spec)
    indices = list(range(configurations))
    if spec.order == "sequential":
        yield from (TrialPlan(index, kind, k) for index in indices for kind, k in kinds)
        return
    shuffle = random.Random(spec.seed).shuffle  # noqa: S311 (a stored seed makes the order repeatable; nothing secret)
    for kind, k in kinds:
        if spec.order == "randomised":
            shuffle(indices)
        is_backward = spec.order == "interleaved" and kind in ("measured", "control") and k % 2 == 0
        yield from (TrialPlan(index, kind, k) for index in (indices[::-1] if is_backward else indices))


def _rounds(spec: ExperimentSpec) -> Iterator[tuple[Kind, int]]:
    """Yield repetitions and, next to them, control runs and the ideal-network run.

    Control runs are spread over the repetitions, and run after the odd and before the even ones: a steady drift cancels out.
    """
    for k in range(1, spec.at_least + 1):
        due = [c for c in range(1, spec.controls + 1) if 1 + (c - 1) * spec.at_least // spec.controls == k]
        here: list[tuple[Kind, int]] = [("measured", k), *(("control", c) for c in due)]
        yield from here if k % 2 else here[::-1]
        if k == 1 and spec.ideal:
            yield "ideal", 1
