"""Limits of imports and of users' bundles: disk, processor time, addresses, clusters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.errors import BadBundle
from experiments.exchange.external_results import import_report
from experiments.exchange.table import read_table
from experiments.library import load_defaults
from experiments.models import Cluster, Experiment


def test_project_has_a_bounded_number_of_imported_clusters(
    db: None, session_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report of 60 kB made 600, which a page lists for all members."""
    monkeypatch.setattr("experiments.exchange.file_moves.MOST_CLUSTERS", 2)
    case = {"name": "t", "partition": "p", "environ": "e", "result": "pass", "num_tasks": 1, "num_tasks_per_node": 1}

    def report(*systems: str) -> Path:
        cases = [{**case, "system": system, "time_run": float(n + 1)} for n, system in enumerate(systems)]
        path = tmp_path / f"{'-'.join(systems)}.json"
        path.write_text(json.dumps({"session_info": {"data_version": "4.0"}, "runs": [{"testcases": cases}]}))
        return path

    project = load_defaults()
    with pytest.raises(BadBundle, match="results of 2 other clusters"):
        import_report(report("a", "b", "c"), project=project)
    assert not Experiment.objects.exists()
    import_report(report("a", "b"), project=project)
    import_report(report("b", "a"), project=project)
    assert Cluster.objects.filter(elsewhere=True).count() == 2


def test_read_table_refuses_a_count_of_thousands_of_digits() -> None:
    """Python reads none of more than 4300: an error 500."""
    assert read_table("hosts,elapsed_s\n007,1\n").trials[0]["parameters"] == {"hosts": 7}
    table = read_table(f"hosts,elapsed_s\n{'9' * 5000},1\n")
    assert table.trials[0]["parameters"] == {"hosts": "9" * 5000}
