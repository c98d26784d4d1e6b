"""Result files of other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REFRAME = Path(__file__).parents[2] / "data" / "reframe-report.json"


def reframe() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(REFRAME.read_text())
    return data


def talp(**region: Any) -> dict[str, Any]:
    """A summary as ``talp_output.c`` of DLB 3.5 writes it: four ranks on two nodes."""
    record = {
        "numCpus": 4,
        "numMpiRanks": 4,
        "numNodes": 2,
        "avgCpus": 4.0,
        "cycles": 0,
        "instructions": 0,
        "numMeasurements": 4,
        "numMpiCalls": 1200,
        "numOmpParallels": 0,
        "numOmpTasks": 0,
        "elapsedTime": 2_500_000_000,
        "usefulTime": 8_000_000_000,
        "mpiTime": 2_000_000_000,
        "parallelEfficiency": 0.8,
        "mpiParallelEfficiency": 0.8,
        "mpiCommunicationEfficiency": 0.89,
        "mpiLoadBalance": 0.9,
    }
    return {
        "dlbVersion": "3.5.0",
        "timestamp": "2025-05-01T12:00:00+0200",
        "resources": {"numCpus": 4, "numNodes": 2, "numMpiRanks": 4},
        "Application": {"Global": {**record, **region}, "solve": record},
    }


def _experiment(
    name: str, nodes: int, time: Any, *, status: str = "SUCCESS", kind: str = "application", **own: Any
) -> dict[str, Any]:
    variables = {
        "n_nodes": str(nodes),
        "n_ranks": str(2 * nodes),
        "repeat_index": "0",
        "experiment_run_dir": f"/w/{name}",
        **own,
    }
    foms = [
        {"name": "Total time", "value": time, "units": "s", "origin": "amg", "origin_type": kind},
        {"name": "Figure of Merit", "value": "3.5", "units": "zones/s", "origin": "amg", "origin_type": kind},
        {"name": "Compiler", "value": "gcc", "units": "", "origin": "amg", "origin_type": kind},
    ]
    phases = [{"name": "setup", "value": 250, "units": "ms", "origin": "amg", "origin_type": kind}]
    return {
        "name": f"amg.problem1.{name}",
        "RAMBLE_STATUS": status,
        "application_name": "amg",
        "workload_name": "problem1",
        "RAMBLE_VARIABLES": variables,
        "RAMBLE_RAW_VARIABLES": variables,
        "CONTEXTS": [
            {"name": "null", "display_name": "null", "foms": foms},
            {"name": "phase_1", "display_name": "Phase 1", "foms": phases},
        ],
    }


def ramble() -> dict[str, Any]:
    return {
        "workspace_name": "scaling",
        "experiments": [
            _experiment("a_2", 2, "12.5", grid="64"),
            _experiment("a_4", 4, 7.5, grid="128"),
            _experiment("a_8", 8, "", status="FAILED", grid="128"),
            _experiment("a_r", 2, 10, kind="summary::mean", grid="64"),
        ],
    }
