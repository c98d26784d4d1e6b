"""Defaults of the new-experiment form, within the limits of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from dashboard.labels import workload_title
from dashboard.panels.new.draft import default_of
from experiments import workloads
from experiments.common.stored_mappings import mapping_at
from experiments.library import FIRST_STUDY
from experiments.models import Cluster
from experiments.specification import ExperimentSpec
from experiments.specification.yaml_lines import YamlDocument

_HOSTS: Final = (1, 2, 4)
"""The first sweep of a cluster: small enough for two cores, and it shows scaling."""
_FEW: Final = _HOSTS[:2]


def starting_draft(clusters: Sequence[Cluster], *, workload: str = "", cluster: str = "") -> dict[str, Any]:
    """Return the first study, or a first sweep of another workload or cluster.

    With one host, its ranks are swept. Queries the facts of the latest trial of the cluster.
    """
    usual = default_of(ExperimentSpec, "cluster")
    by_slug = {candidate.slug: candidate for candidate in clusters}
    proposed = by_slug.get(cluster) or by_slug.get(usual) or next(iter(clusters), None)
    if not workload and (proposed is None or proposed.slug == usual):
        return first_study()
    hosts = _HOSTS if proposed is None else _up_to(proposed.hosts_to_suggest, _HOSTS)
    swept, noun = ("hosts", "host") if proposed is None or len(hosts) > 1 else ("ranks_per_host", "rank")
    values = hosts if proposed is None or len(hosts) > 1 else _up_to(proposed.cores_to_suggest, _FEW)
    draft: dict[str, Any] = {
        "name": workload_title(workload) if workload else f"TIP4P water, {noun} sweep",
        "workload": workload or "water",
        "sweep": {swept: _written([ranks for ranks in values if _runs_on(workload, ranks)] or (2,))},
    }
    definition = workloads.find(workload)
    if definition is not None and definition.first_sweep:
        draft |= {"sweep": dict([definition.first_sweep]), "parameters": {swept: 2}}
    return draft if proposed is None or proposed.slug == usual else {**draft, "cluster": proposed.slug}


def _runs_on(workload: str, ranks: int) -> bool:
    definition = workloads.find(workload)
    try:
        if definition is not None:
            definition.check(definition.parameters_type(), ranks=ranks)
    except workloads.Mismatch:
        return False
    except ValidationError:  # parameters without a default
        return True
    return True


def first_study() -> dict[str, Any]:
    """Return the built-in study that a new user runs, without its words about itself."""
    study = YamlDocument(FIRST_STUDY.read_text()).data
    return {name: value for name, value in study.items() if name not in ("description", "tags")}


def with_own_sweep(draft: Mapping[str, Any], proposed: Mapping[str, Any], *, is_filled_in: bool) -> dict[str, Any]:
    """Replace a sweep of the form or of another workload by the proposed one."""
    definition = workloads.find(draft.get("workload", ""))
    firsts = {workload.first_sweep[0] for workload in workloads.registry() if workload.first_sweep}
    sweep = mapping_at(draft, "sweep")
    if definition is None or not sweep:
        return dict(draft)
    if not is_filled_in and not sweep.keys() <= firsts - definition.parameters_type.model_fields.keys():
        return dict(draft)
    typed = {name: value for name, value in mapping_at(draft, "parameters").items() if name not in proposed["sweep"]}
    constants = {**mapping_at(proposed, "parameters"), **typed}
    rest = {name: value for name, value in draft.items() if name != "parameters"}
    return rest | {"sweep": proposed["sweep"]} | ({"parameters": constants} if constants else {})


def row_values(cluster: Cluster) -> dict[str, str]:
    """Return the values of a new sweep row by parameter of the cluster."""
    return {
        "hosts": _written(_up_to(cluster.hosts_to_suggest, _FEW)),
        "ranks_per_host": _written(_up_to(cluster.cores_to_suggest, _FEW)),
    }


def _up_to(limit: int | None, values: Sequence[int]) -> Sequence[int]:
    """Return the values within the limit, at least the first; two if unknown."""
    return values[:2] if limit is None else [value for value in values if value <= max(limit, 1)]


def _written(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))
