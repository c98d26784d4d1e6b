"""Cost of the search of an experiment tracker (MLflow), beside ``GET trials/``.

    python3 -m venv var/tracker && var/tracker/bin/pip install mlflow-skinny sqlalchemy alembic sqlparse
    var/tracker/bin/python benchmarks/tracker.py [--runs 50000] [--searches 20]

Runs with 60 metrics and 4 parameters are in its SQL store (SQLite), written as rows. A search returns 50 runs, filtered by a
parameter and a metric and sorted by a metric. It needs none of Rankwire's packages; ``benchmarks.scale`` starts it.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from typing import Any

METRICS = 60
BATCH = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=50_000)
    parser.add_argument("--searches", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        address = f"sqlite:///{directory}/runs.db"
        store(address, directory, options.runs)
        print(*search(address, options.searches))


def store(address: str, directory: str, count: int) -> None:
    """Write the runs into the tables that MLflow's own store has made."""
    from mlflow.store.tracking.dbmodels import models
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    tracking = SqlAlchemyStore(address, directory)
    chance, now = random.Random(2007), int(time.time() * 1000)
    for first in range(0, count, BATCH):
        rows: dict[Any, list[dict[str, Any]]] = {}
        for key_number in range(first, min(first + BATCH, count)):
            key = f"{key_number:032x}"
            run: dict[str, Any] = {
                "run_uuid": key,
                "name": key,
                "source_type": "LOCAL",
                "entry_point_name": "",
                "user_id": "benchmark",
            }
            run |= {
                "status": "FINISHED",
                "start_time": now + key_number,
                "end_time": now + key_number,
                "source_version": "",
            }
            run |= {"lifecycle_stage": "active", "artifact_uri": directory, "experiment_id": 0, "source_name": ""}
            rows.setdefault(models.SqlRun, []).append(run)
            hosts = chance.choice((1, 2, 4, 8, 12, 16))
            for name, value in {
                "hosts": hosts,
                "mtu": chance.choice((1500, 9000)),
                "molecules": 216,
                "steps": 500,
            }.items():
                rows.setdefault(models.SqlParam, []).append({"key": name, "value": str(value), "run_uuid": key})
            for index in range(METRICS):
                metric = {"key": f"metric_{index}", "value": chance.lognormvariate(0, 1) / hosts, "timestamp": now}
                metric |= {"step": 0, "is_nan": False, "run_uuid": key}
                rows.setdefault(models.SqlMetric, []).append(metric)
                rows.setdefault(models.SqlLatestMetric, []).append(metric)
        with tracking.ManagedSessionMaker() as session:
            for table, values in rows.items():
                session.bulk_insert_mappings(table, values)


def search(address: str, count: int) -> tuple[float, float]:
    """Return the median milliseconds and CPU milliseconds of a search."""
    from mlflow import MlflowClient

    client, times = MlflowClient(address), []
    options: dict[str, Any] = {"order_by": ["metrics.metric_0 DESC"], "max_results": 50}
    for number in range(count + 2):
        began, used = time.perf_counter(), time.process_time()
        where = f"params.hosts = '4' and metrics.metric_1 < {1 + number / 100}"
        assert len(client.search_runs(["0"], where, **options)) == 50
        times.append((time.perf_counter() - began, time.process_time() - used))
    elapsed, cpu = (statistics.median(column[2:]) for column in zip(*times, strict=True))
    return round(1000 * elapsed, 1), round(1000 * cpu, 1)


if __name__ == "__main__":
    main()
