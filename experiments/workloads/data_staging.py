"""Data staging and BLAST: the study of the White Rose Grid e-Science Centre.

Rank 0 makes the data set and serves it; every other rank is a node that fetches it and searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any, Final, Literal

from analysis.numbers import SHARE
from experiments.errors import OutputError
from experiments.workloads.base import OwnTime, Parameters, Parsed, Phases, WorkloadDefinition, figures_of
from experiments.workloads.fields import Bytes, parameter
from experiments.workloads.shipped import json_result, shipped

RESULT: Final = "staging.json"


class StagingParameters(Parameters):
    """The way, size and use of the data set."""

    staging: Literal["pull", "multicast", "tree"] = parameter("pull", "Staging")
    """pull: every node fetches from the server at once; multicast: uftp to all at once; tree: MPI broadcast, a binary tree."""
    dataset_bytes: Bytes = parameter(20_000_000, "Data set", unit="B", ge=10_000, le=2_000_000_000)
    """Bytes that every node needs; 568 MB in the study. For BLAST four letters are one byte."""
    searches: int = parameter(3, "Searches per node", ge=1, le=10_000)
    """Searches one after the other; the first waits for the data."""
    work: Literal["blast", "read"] = parameter("blast", "Work")
    """blast: megablast of 20 queries; read: the whole data set is read through."""
    multicast_rate: float = parameter(0.0, "Multicast rate", unit="bit/s", ge=0, le=1e12)
    """Rate of uftp in bit/s; 0: as fast as the server's own link takes it."""


_FIGURES: Final = figures_of("data-staging", (
    ("first_search_s", "First search", "s", "lower", "From the start of staging to the end of a node's first search, mean."),
    ("later_search_s", "Later search", "s", "lower", "Mean over the nodes and all searches after the first."),
    ("aggregate_bandwidth_Bps", "Aggregate bandwidth", "B/s", "higher", "Data set x nodes / staging time of the last node."),
    ("staging_s", "Staging, last node", "s", "lower", "Until the last node has the whole data set."),
    ("staging_mean_s", "Staging, mean", "s", "lower", "Until a node has the whole data set, mean over the nodes."),
    ("run_s", "Run", "s", "lower", "From the start of staging to the end of the last node's last search."),
    ("nodes", "Nodes", "1", "neutral", "Ranks that fetch and search: all but the server."),
    ("utilisation", "Utilisation of the nodes", SHARE, "higher", "Time in searches / (nodes x run); other time is waiting."),
    ("staged_bytes", "Data set", "B", "neutral", "Bytes that each node received."),
))  # fmt: skip


def estimate_s(parameters: StagingParameters, *, ranks: int) -> float:
    # 20 MB/s to make the database, 200 MB/s to stage it; a search takes 20 ms and 50 MB/s of one core of two that the nodes share.
    search = 0.02 + parameters.dataset_bytes / 5e7
    staging = bottleneck_bytes(parameters, ranks=ranks) / 2e8
    return 2.0 + parameters.dataset_bytes / 2e7 + staging + parameters.searches * search * max(1.0, ranks / 2)


def bottleneck_bytes(parameters: StagingParameters, *, ranks: int) -> float:
    # A tree's root sends to some nodes and they to others; a multicast is sent once.
    copies = {"pull": ranks - 1, "multicast": 1, "tree": min(2, ranks - 1)}[parameters.staging]
    return float(parameters.dataset_bytes * copies)


def _parsed(result: Mapping[str, Any]) -> Parsed:
    nodes = result["nodes"]
    later = [seconds for node in nodes for seconds in node["searches_s"][1:]]
    if any(not count for node in nodes for count in node["found"]):
        raise OutputError("a search found none of its queries in the data set")
    staging_s, run_s = max(node["staged_s"] for node in nodes), max(node["ended_s"] for node in nodes)
    values = {
        "first_search_s": fmean(node["staged_s"] + node["searches_s"][0] for node in nodes),
        "aggregate_bandwidth_Bps": result["dataset_bytes"] * len(nodes) / staging_s,
        "staging_s": staging_s,
        "staging_mean_s": fmean(node["staged_s"] for node in nodes),
        "run_s": run_s,
        "nodes": len(nodes),
        "utilisation": sum(sum(node["searches_s"]) for node in nodes) / (len(nodes) * run_s),
        "staged_bytes": result["dataset_bytes"],
    }
    if later:
        values["later_search_s"] = fmean(later)
    rows = [
        {
            "rank": node["rank"],
            "host": node["host"],
            "staged_s": node["staged_s"],
            "first_search_s": node["searches_s"][0],
            "later_searches_s": fmean(node["searches_s"][1:]) if node["searches_s"][1:] else None,
            "ended_s": node["ended_s"],
        }
        for node in nodes
    ]
    return Parsed({f"data-staging.{name}": value for name, value in values.items()}, {"Nodes": rows})


DATA_STAGING: Final = WorkloadDefinition(
    slug="data-staging",
    title="Data staging",
    summary="One data set to many nodes (pull, multicast, tree), then BLAST searches on it",
    programs={
        "/usr/bin/python3": "python3",
        "makeblastdb": "ncbi-blast+",
        "blastn": "ncbi-blast+",
        "uftp": "uftp",
        "uftpd": "uftp",
    },
    python_modules={"mpi4py": "python3-mpi4py"},
    parameters_type=StagingParameters,
    decides="data-staging.run_s",
    own_time=OwnTime("data-staging.run_s"),
    figures=_FIGURES,
    outputs=(RESULT,),
    ranks_alike=False,
    phases=Phases(
        nodes="data-staging.nodes",
        first="data-staging.first_search_s",
        later="data-staging.later_search_s",
        run="data-staging.run_s",
        aggregate="data-staging.aggregate_bandwidth_Bps",
        steps="searches",
        method="staging",
        baseline="pull",
        utilisation="data-staging.utilisation",
        printed_faster="data-staging.speedup",
        printed_more_percent="data-staging.aggregate_bandwidth_gain_percent",
    ),
    **shipped("the server takes one rank and every node another", "staging.py", "places.py"),
    parse=json_result(RESULT, _parsed),
    estimate_s=estimate_s,
    bottleneck_bytes=bottleneck_bytes,
)
"""Pull, multicast or broadcast of a data set to all nodes, and BLAST searches on it."""
