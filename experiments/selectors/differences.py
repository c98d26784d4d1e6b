"""Differences between settings and between recorded environments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.common.facts import by_dotted_name
from experiments.models import Configuration, Environment, Experiment, Trial


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting or fact with the value of each side.

    ``silent`` are the indexes of sides that do not state it: a publication states few settings and no kernel facts.
    """

    name: str
    values: tuple[Any, ...]
    silent: frozenset[int] = frozenset()

    @property
    def differs(self) -> bool:
        """Return whether the values differ; a missing value counts as one."""
        return len({repr(value) for value in self.values}) > 1

    @property
    def apart(self) -> bool:
        """Return whether two sides that state it differ."""
        return len({repr(value) for index, value in enumerate(self.values) if index not in self.silent}) > 1

    @property
    def stated_by(self) -> tuple[int, ...]:
        return tuple(index for index in range(len(self.values)) if index not in self.silent)


def settings_per_side(
    experiments: Sequence[Experiment], rows: Sequence[Configuration | None], trials: Sequence[Sequence[Any]]
) -> list[Difference]:
    """Return workload, cluster and parameters per side, differences first.

    ``trials`` have their ``transport``, which a specification may leave to the cluster.
    """
    parameters = [dict(row.parameters) if row else {} for row in rows]
    transports = [{t.transport for t in group if t.transport} for group in trials]
    if all(transports):
        for row_parameters, names in zip(parameters, transports, strict=True):
            row_parameters.setdefault("transport", ", ".join(sorted(names)))
    keys = list(dict.fromkeys(key for row_parameters in parameters for key in row_parameters))
    published = {index for index, experiment in enumerate(experiments) if experiment.published}
    # without a setting, an experiment uses the default, which is a value; a publication may omit it
    silent = {key: frozenset(n for n in published if parameters[n].get(key) is None) for key in keys}
    clusters = tuple(e.cluster.name if e.cluster else None for e in experiments)
    settings = [
        Difference("workload", tuple(e.workload for e in experiments)),
        Difference("cluster", clusters, frozenset(n for n, name in enumerate(clusters) if name is None)),
        *(
            Difference(key, tuple(row_parameters.get(key) for row_parameters in parameters), silent[key])
            for key in keys
        ),
    ]
    return _apart_first(settings)


def environments_per_side(trials: Sequence[Sequence[Trial]]) -> list[Difference]:
    """Return the recorded facts per side, differences first. One query."""
    keys = {t.environment_id for group in trials for t in group if t.environment_id}
    facts = {e.pk: by_dotted_name(e.facts) for e in Environment.objects.filter(pk__in=keys)}
    seen: list[dict[str, dict[str, None]]] = []
    for group in trials:
        side: dict[str, dict[str, None]] = defaultdict(dict)
        for key in dict.fromkeys(t.environment_id for t in group if t.environment_id):
            for name, value in facts[key].items():
                side[name][value] = None
        seen.append(side)
    differences = [
        Difference(
            name,
            tuple(" / ".join(side[name]) if name in side else None for side in seen),
            frozenset(index for index, side in enumerate(seen) if name not in side),
        )
        for name in sorted({name for side in seen for name in side})
    ]
    return _apart_first(differences)


def _apart_first(differences: Sequence[Difference]) -> list[Difference]:
    return sorted(differences, key=lambda d: (not d.apart, not d.differs))
