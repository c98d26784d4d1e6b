"""Launch of a configuration on a cluster, resolved once for preview and trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments import workloads
from experiments.specification.design import launch_of, link_of, ranks_of, workload_parameters
from experiments.specification.parameters import Link
from experiments.workloads import WorkloadDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """The workload, its command and files, and its hosts and network."""

    workload: WorkloadDefinition
    parameters: Mapping[str, Any]
    """Those of the configuration: of the workload, the cluster and the link."""
    typed_parameters: Any
    """The typed parameters of the workload."""
    hosts: int
    ranks: int
    link: Link
    launch: Mapping[str, str]
    """Transport, bind and distribution if the specification chose them."""
    program: tuple[str, ...]
    """The argv of one rank's program."""
    environment: Mapping[str, str]
    threads: int
    """Threads of each rank."""
    files: Mapping[str, str]
    """Texts of the input files by name."""
    decks: Mapping[str, str]
    """Paths of further input files on the first host by name."""

    def inputs(self, decks: Mapping[str, str]) -> dict[str, str]:
        """Return the texts of all input files, with ``decks``. Raise Mismatch."""
        return {**self.files, **self.workload.filled(self.typed_parameters, decks, ranks=self.ranks)}


def plan_launch(
    workload: str, parameters: Mapping[str, Any], cluster: str = "", *, is_ideal: bool = False
) -> LaunchPlan:
    """Return the launch of a configuration; ``is_ideal``: on an ideal network."""
    definition = workloads.get(workload, parameters, cluster)
    typed_parameters, ranks = workload_parameters(workload, parameters), ranks_of(parameters)
    link, threads = link_of(parameters), definition.threads(typed_parameters)
    return LaunchPlan(
        workload=definition,
        parameters=parameters,
        typed_parameters=typed_parameters,
        hosts=int(parameters["hosts"]),
        ranks=ranks,
        link=link.ideal() if is_ideal else link,
        launch=launch_of(workload, parameters),
        program=definition.command(typed_parameters, ranks=ranks),
        environment={**definition.environment(typed_parameters, ranks=ranks), "OMP_NUM_THREADS": str(threads)},
        threads=threads,
        files=definition.files(typed_parameters, ranks=ranks),
        decks=definition.decks(typed_parameters, ranks=ranks),
    )
