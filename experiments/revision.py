"""Revisions: previews of new versions, differences, and plans of further points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import transaction

from experiments.common.quantities import BANDWIDTH, DURATION, FRACTION
from experiments.errors import InvalidSpec
from experiments.models import UNFINISHED, Experiment, Kind, State
from experiments.models.experiment import repetitions_of_design, specification_hash
from experiments.specification import ExperimentSpec, design, parse
from experiments.specification.ranges import expand_values

FieldChange = tuple[str, Any, Any]
"""(path of a field, old value, new value); None if a version does not set it."""
_ABSENT: Final = None
_WRITTEN: Final = {"link.bandwidth": BANDWIDTH, "link.delay": DURATION, "link.loss": FRACTION}


@dataclass(frozen=True, slots=True)
class Revision:
    """The effect of making a specification the current version."""

    version: int
    queued: int
    """Trials that would be queued."""
    dropped: int
    """Waiting trials that would be replaced."""
    new_points: int
    leaving: tuple[Mapping[str, Any], ...]
    """Parameters of configurations that leave the design; their trials are excluded."""
    stale: int
    """Ended trials that would be excluded."""
    changed_fields: tuple[FieldChange, ...]

    @property
    def changes_nothing(self) -> bool:
        return not self.changed_fields


def preview_of(experiment: Experiment, spec: ExperimentSpec, plan: design.Design) -> Revision:
    """Return the effect of ``experiment.revise(spec)`` in four queries."""
    old = experiment.spec
    moved = (spec.cluster, spec.capture) != (old.cluster, old.capture)
    trials = list(
        experiment.trials.filter(superseded=False).values_list(
            "configuration__hash", "kind", "repetition", "state", "configuration__in_design"
        )
    )
    existing = {(h, kind, n) for h, kind, n, state, _ in trials if state != State.QUEUED and not moved}
    hashes = {point.hash for point in plan.configurations}
    has = dict(experiment.configurations.filter(in_design=True).values_list("hash", "parameters"))
    planned = [(plan.configurations[t.configuration].hash, str(t.kind), t.repetition) for t in plan.trials]
    over = [h for h, _, _, state, in_design in trials if in_design and state not in UNFINISHED]
    further = sum(
        state == State.QUEUED and kind == Kind.MEASURED and n > repetitions_of_design(old, spec) and h in hashes
        for h, kind, n, state, _ in trials
    )
    same = specification_hash(spec) == experiment.specification_hash
    return Revision(
        version=experiment.version + 1,
        queued=0 if same else sum(key not in existing for key in planned) + further,
        dropped=0 if same else sum(state == State.QUEUED for *_, state, _ in trials),
        new_points=len(hashes - has.keys()),
        leaving=tuple(parameters for h, parameters in has.items() if h not in hashes),
        stale=sum(moved or h not in hashes for h in over),
        changed_fields=tuple(changed_fields(experiment.specification, spec.to_dict())),
    )


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> Iterator[FieldChange]:
    """Yield the fields that differ between two specifications, nested ones by path."""
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, _ABSENT), after.get(name, _ABSENT)
        if isinstance(old, Mapping) or isinstance(new, Mapping):
            yield from changed_fields(
                old if isinstance(old, Mapping) else {}, new if isinstance(new, Mapping) else {}, f"{prefix}{name}."
            )
        elif old != new:
            yield f"{prefix}{name}", old, new


@dataclass(frozen=True, slots=True)
class MorePoints:
    """A specification with new points (None: none is new), and further repetitions."""

    spec: ExperimentSpec | None
    repetitions: Mapping[str, int]
    """Configuration hash -> repetitions beyond the specification's."""
    queued: int


def plan_points(experiment: Experiment, points: Sequence[tuple[Mapping[str, Any], int]]) -> MorePoints | None:
    """Return how to run ``points`` (parameters, repetitions); None if impossible.

    The sweep must accept new numbers of hosts, and the design must fit the cluster. Single points get repetitions as further trials.
    """
    spec = experiment.spec
    existing = set(experiment.configurations.filter(in_design=True).values_list("hash", flat=True))
    repetitions = {design.configuration_hash(experiment.workload, parameters): n for parameters, n in points}
    sizes = {
        parameters["hosts"]
        for parameters, _ in points
        if design.configuration_hash(experiment.workload, parameters) not in existing
    }
    if not sizes:
        return MorePoints(None, repetitions, sum(repetitions.values()))
    extended = _with_sizes(experiment, spec, sizes)
    if extended is None:
        return None
    plan, has = design.expand(extended), experiment.cluster.most_hosts if experiment.cluster else None
    if not repetitions.keys() <= {p.hash for p in plan.configurations}:
        return None
    if has is not None and design.most_hosts(extended, plan)[0] > has:
        return None
    further = {h: n - (0 if h in existing else spec.at_least) for h, n in repetitions.items()}
    further = {h: n for h, n in further.items() if n > 0}
    return MorePoints(extended, further, preview_of(experiment, extended, plan).queued + sum(further.values()))


def _with_sizes(experiment: Experiment, spec: ExperimentSpec, sizes: set[Any]) -> ExperimentSpec | None:
    if spec.explores or spec.optimised or any("hosts" in group for group in spec.zip):
        return None
    constants = dict(experiment.specification.get("parameters", {}))
    one = constants.pop("hosts", 1)
    has = expand_values(spec.sweep["hosts"]) if "hosts" in spec.sweep else [one]
    sweep = {"hosts": sorted({*has, *sizes}), **{k: v for k, v in spec.sweep.items() if k != "hosts"}}
    try:
        return parse(
            {**experiment.specification, "parameters": constants, "sweep": sweep}, max_trials=settings.MAX_TRIALS
        )
    except InvalidSpec:
        return None


def plan_configuration(experiment: Experiment, parameters: Mapping[str, Any], repetitions: int) -> MorePoints | None:
    """Return how to run trials of one configuration, or None.

    The sweep becomes the list of its points and the new one, without other combinations.
    """
    spec = experiment.spec
    digest = design.configuration_hash(experiment.workload, parameters)
    rows = dict(experiment.configurations.filter(in_design=True).order_by("position").values_list("hash", "parameters"))
    if digest in rows:
        return MorePoints(None, {digest: repetitions}, repetitions)
    extended = _with_row(experiment, [*rows.values(), parameters])
    if extended is None:
        return None
    plan = design.expand(extended)
    if {point.hash for point in plan.configurations} != {*rows, digest}:
        return None
    more = max(0, repetitions - spec.at_least)
    return MorePoints(extended, {digest: more} if more else {}, preview_of(experiment, extended, plan).queued + more)


def _with_row(experiment: Experiment, rows: Sequence[Mapping[str, Any]]) -> ExperimentSpec | None:
    """Return the specification whose sweep lists ``rows``, the last of them new."""
    *measured, new = rows
    swept = experiment.specification.get("sweep", {})
    added = [name for name in new if name not in swept and any(row.get(name) != new[name] for row in measured)]
    columns = {name: [_written(name, row.get(name)) for row in rows] for name in (*swept, *added)}
    constants = {k: v for k, v in experiment.specification.get("parameters", {}).items() if k not in columns}
    changes = {"parameters": constants, "sweep": columns, "zip": [list(columns)] if len(columns) > 1 else []}
    rest = {name: value for name, value in experiment.specification.items() if name != "where"}
    try:
        return parse({**rest, **changes}, max_trials=settings.MAX_TRIALS)
    except InvalidSpec:
        return None


def _written(name: str, value: Any) -> Any:
    """Return a value as users write it, without loss."""
    dimension = _WRITTEN.get(name)
    return value if dimension is None or value is None else dimension.format(value)


def add_points(experiment: Experiment, more: MorePoints, *, author: Any = None) -> int:
    """Queue a plan in one transaction; return the count. Raise InvalidSpec."""
    experiment.require_editable()
    with transaction.atomic():
        experiment.wait_for_others()
        queued = experiment.revise(more.spec, author=author) if more.spec is not None else 0
        return queued + experiment.queue_repetitions(more.repetitions)
