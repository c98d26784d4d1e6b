"""Generated trials in one project, by COPY, to measure a large repository."""

from __future__ import annotations

import hashlib
import json
import time
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, Final

import numpy as np
from django.db import connection, transaction

from analysis.catalogue import METRICS
from experiments import cluster_kinds
from experiments.library import load_defaults
from experiments.models import Cluster, Configuration, Environment, Experiment, Project, TrialValues
from experiments.specification.design import configuration_hash

PROJECT: Final = "generated"
REPETITIONS: Final = 5
HOSTS: Final = (1, 2, 4, 8, 12, 16)
MTUS: Final = (1500, 9000)
MEASUREMENTS: Final = 60
_SEED: Final = 2007
_FIRST: Final = datetime(2026, 1, 1, tzinfo=UTC)
_BATCH: Final = 5000
_LONGEST_VACUUM_S: Final = 60


def generate(trials: int, measurements: int = MEASUREMENTS) -> int:
    """Add about ``trials`` finished trials with measurements; return how many."""
    load_defaults()
    project, _ = Project.objects.get_or_create(slug=PROJECT, defaults={"name": "Generated rows, not measurements"})
    per_experiment = len(HOSTS) * len(MTUS) * REPETITIONS
    with transaction.atomic():
        environments = [_environment(release) for release in ("6.8.0-45", "6.8.0-47")]
        experiments = _experiments(project, max(1, round(trials / per_experiment)))
        configurations = _configurations(experiments)
        with connection.cursor() as cursor:
            stop_triggers(cursor)
            keys = _copy_trials(cursor, configurations, environments)
            _copy_measurements(cursor, configurations, keys, measurements)
            summarise(cursor, project.pk)
            for first in range(0, len(keys), _BATCH):
                TrialValues.gather(keys[first : first + _BATCH])
            start_triggers(cursor)
    if connection.in_atomic_block:  # a test: VACUUM has to wait for the end of its transaction
        return len(keys)
    _vacuum()
    return len(keys)


def _vacuum() -> None:
    """Vacuum the tables as autovacuum would, once no older snapshot lives."""
    deadline = time.monotonic() + _LONGEST_VACUUM_S
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) experiments_configuration, experiments_experiment, experiments_trial")
        cursor.execute("VACUUM (ANALYZE) experiments_measurement, experiments_summary, experiments_trialvalues")
        cursor.execute("VACUUM (ANALYZE) experiments_historypart")
        while time.monotonic() < deadline:
            cursor.execute(
                "SELECT relallvisible >= 0.99 * relpages FROM pg_class WHERE relname = 'experiments_summary'"
            )
            if cursor.fetchone()[0]:
                return
            time.sleep(1)
            cursor.execute("VACUUM experiments_summary")


def stop_triggers(cursor: Any) -> None:
    """Turn off triggers of rows: summaries, made by one query, and foreign keys."""
    cursor.execute("SET LOCAL session_replication_role = replica")


def start_triggers(cursor: Any) -> None:
    cursor.execute("SET LOCAL session_replication_role = origin")


def _environment(release: str) -> Environment:
    return Environment.store({"generated": "yes, by benchmarks", "kernel": {"release": release}})


def _experiments(project: Project, count: int) -> list[Experiment]:
    """Experiments of three sizes of water on both clusters, over nine months."""
    everywhere = [kind.name for kind in cluster_kinds.registry() if kind.exists_everywhere]
    clusters = list(Cluster.objects.filter(kind__in=everywhere).order_by("slug"))
    already = Experiment.objects.filter(project=project).count()
    rows = []
    for number in range(already, already + count):
        molecules = (216, 1728, 5832)[number % 3]
        specification = {
            "name": f"Generated {number}",
            "workload": "water",
            "cluster": clusters[number % 2].slug,
            "parameters": {"molecules": molecules, "steps": 500},
            "sweep": {"hosts": list(HOSTS), "link.mtu": list(MTUS)},
            "repetitions": REPETITIONS,
        }
        rows.append(
            Experiment(
                project=project,
                slug=f"generated-{number}",
                name=f"Generated {number}",
                workload="water",
                cluster=clusters[number % 2],
                specification=specification,
                specification_hash=hashlib.sha256(json.dumps(specification).encode()).hexdigest(),
                tags=["generated"],
            )
        )
    return Experiment.objects.bulk_create(rows, batch_size=_BATCH)


def _configurations(experiments: list[Experiment]) -> list[Configuration]:
    rows = []
    for experiment in experiments:
        for position, (hosts, mtu) in enumerate(product(HOSTS, MTUS)):
            parameters = {
                **experiment.specification["parameters"],
                "hosts": hosts,
                "ranks_per_host": 1,
                "link.mtu": mtu,
                "link.bandwidth": 1e9,
                "link.delay": 0.0002,
            }
            rows.append(
                Configuration(
                    experiment=experiment,
                    hash=configuration_hash("water", parameters),
                    parameters=parameters,
                    hosts=hosts,
                    ranks=hosts,
                    position=position,
                )
            )
    return Configuration.objects.bulk_create(rows, batch_size=_BATCH)


def _copy_trials(cursor: Any, configurations: list[Configuration], environments: list[Environment]) -> list[int]:
    count = len(configurations) * REPETITIONS
    cursor.execute(
        "SELECT nextval(pg_get_serial_sequence('experiments_trial', 'id')) FROM generate_series(1, %s)", [count]
    )
    keys = [row[0] for row in cursor.fetchall()]
    columns = (
        "id, experiment_id, configuration_id, cluster_id, environment_id, kind, repetition, attempt, position, version, "
        "superseded, state, ended_at, worker, beats, reaper_beats, reaper_rounds, progress, message, traceback, "
        "command, conditions, trust, trust_reasons, not_available, tables"
    )
    step = timedelta(days=270) / max(1, count)
    with cursor.copy(f"COPY experiments_trial ({columns}) FROM STDIN") as copy:
        for number, key in enumerate(keys):
            own, repetition = configurations[number // REPETITIONS], number % REPETITIONS + 1
            experiment = own.experiment
            environment = environments[2 * number >= count].pk
            trust = "degraded" if number % 97 == 0 else "good"
            fixed = (repetition, 1, number, 1, False, "finished", _FIRST + number * step, "generated", 0, 0, 0)
            texts = ("{}", "", "", '["generated"]', "{}", trust, "[]", "{}", "{}")
            whose = (key, experiment.pk, own.pk, experiment.cluster_id, environment, "measured")
            copy.write_row((*whose, *fixed, *texts))
    return keys


def _copy_measurements(cursor: Any, configurations: list[Configuration], keys: list[int], count: int) -> None:
    names = sorted(METRICS, key=lambda name: (name not in _SHAPES, name))[:count]
    rng = np.random.default_rng(_SEED)
    with cursor.copy("COPY experiments_measurement (trial_id, metric, scope, value) FROM STDIN") as copy:
        for number, key in enumerate(keys):
            own = configurations[number // REPETITIONS]
            later = 1.06 if 2 * number >= len(keys) else 1.0
            noise = rng.lognormal(0, 0.03, len(names))
            for name, factor in zip(names, noise, strict=True):
                copy.write_row((key, name, "all", _value(name, own, later) * float(factor)))


def _value(name: str, own: Configuration, later: float) -> float:
    """Return elapsed time by the Universal Scalability Law, traffic by a ring."""
    hosts, molecules, mtu = own.hosts, own.parameters["molecules"], own.parameters["link.mtu"]
    elapsed = later * molecules / 500 * (1 + 0.06 * (hosts - 1) + 0.004 * hosts * (hosts - 1)) / hosts
    return float(_SHAPES.get(name, lambda e, h, m, u: 1.0 + h)(elapsed, hosts, molecules, mtu))


_SHAPES: Final[dict[str, Any]] = {
    "elapsed_s": lambda e, h, m, u: e,
    "cpu_s": lambda e, h, m, u: m / 500 * (1 + 0.05 * h),
    "cpu_mean_rank_s": lambda e, h, m, u: m / 500 * (1 + 0.05 * h) / h,
    "packets": lambda e, h, m, u: 1500 / u * 900.0 * m**0.7 * h,
    "wire_bytes": lambda e, h, m, u: 640 * 900.0 * m**0.7 * h,
    "throughput_Bps": lambda e, h, m, u: 640 * 900.0 * m**0.7 * h / e,
    "packet_intensity_pps": lambda e, h, m, u: 1500 / u * 900.0 * m**0.7 * h / e,
    "interarrival_mean_s": lambda e, h, m, u: e / (1500 / u * 900.0 * m**0.7 * h),
}


def summarise(cursor: Any, project: int) -> None:
    # What the database's experiments_summarise does for one configuration, for all of them in one statement.
    cursor.execute(
        """
        INSERT INTO experiments_summary (configuration_id, metric, scope, n, median, minimum, maximum, samples)
        SELECT t.configuration_id, m.metric, m.scope, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY m.value),
               min(m.value), max(m.value), array_agg(m.value ORDER BY t.repetition, t.id)
        FROM experiments_experiment e
        JOIN experiments_trial t ON t.experiment_id = e.id
        JOIN experiments_measurement m ON m.trial_id = t.id
        WHERE e.project_id = %s AND experiments_in_statistics(t.trust, m.metric, m.scope)
        GROUP BY t.configuration_id, m.metric, m.scope
        ON CONFLICT DO NOTHING
        """,
        [project],
    )
    cursor.execute(
        """
        INSERT INTO experiments_historypart (configuration_id, experiment_id, cluster_id, hash, trials, newest_at)
        SELECT c.id, e.id, t.cluster_id, c.hash, count(*), max(t.ended_at)
        FROM experiments_experiment e
        JOIN experiments_configuration c ON c.experiment_id = e.id
        JOIN experiments_trial t ON t.configuration_id = c.id
        WHERE e.project_id = %s
        GROUP BY c.id, e.id, t.cluster_id
        ON CONFLICT DO NOTHING
        """,
        [project],
    )
