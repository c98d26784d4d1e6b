"""A replayable study: recorded calls, and ping-pongs on the same test-bed."""

from __future__ import annotations

import itertools
from typing import Any, Final

from analysis.mpi.calls import Calls, to_bytes
from analysis.replay.calibration import Calibration
from analysis.sensitivity import Link
from experiments.files import MPI_CALLS_NAME, MPI_PROFILE_NAME, write_analysis
from experiments.models import Artifact, Cluster, Experiment, Project, Trial, TrialResult
from experiments.specification import parse
from tests.analysis.replay.scenes import calls_of
from tests.dashboard.studies_measured import NETWORK, measured, needing
from tests.experiments.factories import stored_file

TRUE: Final = Calibration(overhead_s=20e-6, rate_share=0.95, large_times=1.0, scatter=0.0, exchanges=0)
"""The links of the ping-pongs."""
MESSAGES: Final = 2000
BYTES: Final = 2500
"""Size of each message of the study's program."""
_PINGS: Final[dict[str, Any]] = {
    "name": "Calibration",
    "workload": "pingpong",
    "parameters": {"hosts": 2},
    "sweep": {"link.delay": ["0 ms", "0.5 ms"], "message_bytes": [64, 4096, 32768]},
    "link": {"bandwidth": "1 Gbit/s"},
    "repetitions": 1,
}


def study(project: Project, calls: Calls | None = None) -> Experiment:
    """Return the study with its calls, after the ping-pongs."""
    pings(project)
    experiment = measured(project, NETWORK, needing)
    keep_calls(experiment, calls or needy_calls())
    return experiment


def pings(project: Project) -> None:
    """Run ping-pongs on certified links with the properties of TRUE."""
    Experiment.submit(parse(_PINGS), project=project, owner=None)
    cluster = Cluster.objects.get(slug="testbed")
    while (trial := Trial.claim_next(cluster, "tests:1:1")) is not None:
        parameters = trial.configuration.parameters
        link = Link(parameters["link.delay"] + 30e-6, parameters["link.bandwidth"])
        quantities = (("delay", link.delay_s), ("bandwidth", link.rate_bps))
        rows = [{"quantity": quantity, "achieved": value} for quantity, value in quantities]
        trial.certify({"kept": True, "rows": rows, "reasons": []})
        trial.start_running(command=["mpirun"], conditions={})
        trial.start_analysing()
        seconds = TRUE.seconds(link, parameters["message_bytes"])
        trial.finish(TrialResult({"all": {"pingpong.transfer_time_median_s": seconds}}, {}, "good"))


def keep_calls(experiment: Experiment, calls: Calls) -> Trial:
    """Store calls with the first trial on the mildest link."""
    trials = experiment.trials.select_related("configuration")
    trial = min(
        trials,
        key=lambda each: (
            each.configuration.parameters["link.delay"],
            -each.configuration.parameters["link.bandwidth"],
            each.pk,
        ),
    )
    stored_file(trial, MPI_CALLS_NAME, to_bytes(calls), Artifact.Kind.OTHER).save()
    tables = stored_file(trial, MPI_PROFILE_NAME, b"", Artifact.Kind.OTHER)
    ranks = [{"rank": rank, "host": f"host{rank}"} for rank in calls.left_out]
    write_analysis(tables.file, {"ranks": ranks})
    stored_file(trial, MPI_PROFILE_NAME, tables.file.read_bytes(), Artifact.Kind.OTHER).save()
    return trial


def needy_calls() -> Calls:
    """Return calls of 3 s computing and MESSAGES messages, 20 us, 1 Gbit/s."""
    computing, sending = 3_000_000_000 // MESSAGES, round((TRUE.overhead_s + 8 * BYTES / 0.95e9) * 1e9)
    events: list[Any] = [(rank, "Barrier", -1, 0, -2000, -1000) for rank in (0, 1)]
    for n, source in zip(range(MESSAGES), itertools.cycle((0, 1))):
        began = n * (computing + sending) + computing
        events.append((source, "Send", 1 - source, BYTES, began, began + 1000))
        events.append((1 - source, "Recv", source, 0, began, began + sending))
    return calls_of(events)
