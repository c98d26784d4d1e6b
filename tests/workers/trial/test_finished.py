"""A trial that goes well, with a real program on the real test-bed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from experiments.files import read_analysis, trial_directory
from experiments.models import Artifact, Lease, State, Trial

WATER = {"workload": "water", "parameters": {"molecules": 64, "steps": 20}, "sweep": {"hosts": [2]}}


@pytest.fixture
def finished(run_all: Callable[..., list[Trial]]) -> Trial:
    (trial,) = run_all(**WATER)
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    return trial


def capinfos(trial: Trial, tmp_path: Path) -> tuple[int, int]:
    """Packets and bytes on the wire by Wireshark's own counter."""
    stored = trial.artifacts.get(kind=Artifact.Kind.CAPTURE).file
    plain = tmp_path / "capture.pcapng"
    with stored.open("rb") as source, plain.open("wb") as target:
        zstandard.ZstdDecompressor().copy_stream(source, target)
    printed = subprocess.run(
        ["capinfos", "-T", "-r", "-B", "-c", "-d", "-M", plain], check=True, capture_output=True, text=True
    ).stdout
    _, packets, size = printed.split("\t")
    return int(packets), int(size)


def test_everything_of_it_is_kept_and_true(finished: Trial, tmp_path: Path) -> None:
    """One run for all of them: a real one takes seconds."""
    it_counts_packets_and_bytes_as_capinfos_does(finished, tmp_path)
    it_stores_run_metrics_figures_of_merit_and_files(finished)
    it_keeps_where_each_rank_ran_and_what_it_used(finished)
    it_keeps_the_analysis_and_tells_on_what_it_ran(finished)


def it_counts_packets_and_bytes_as_capinfos_does(finished: Trial, tmp_path: Path) -> None:
    values = dict(finished.measurements.filter(scope="all").values_list("metric", "value"))
    packets, size = capinfos(finished, tmp_path)
    assert packets > 1000
    assert (values["packets"], values["wire_bytes"]) == (packets, size)


def it_stores_run_metrics_figures_of_merit_and_files(finished: Trial) -> None:
    values = dict(finished.measurements.filter(scope="all").values_list("metric", "value"))
    assert 0 < values["cpu_mean_rank_s"] <= values["cpu_s"]
    assert values["cpu_s"] == pytest.approx(values["cpu_user_s"] + values["cpu_system_s"])
    assert 0 < values["water.loop_time_s"] < values["elapsed_s"]
    assert values["start_end_s"] == pytest.approx(values["elapsed_s"] - values["water.loop_time_s"])
    kinds = set(finished.artifacts.values_list("kind", flat=True))
    assert kinds == {"stdout", "stderr", "capture", "analysis", "input", "samples", "other"}
    for artifact in finished.artifacts.all():
        assert artifact.file.stat().st_size == artifact.size_bytes
    names = {path.name for path in trial_directory(finished).iterdir()}
    assert names == set(finished.artifacts.values_list("name", flat=True)), "scratch files are left behind"


def it_keeps_where_each_rank_ran_and_what_it_used(finished: Trial) -> None:
    ranks = json.loads(finished.artifacts.get(name="ranks.json").file.read_text())
    assert [(item["rank"], item["host"]) for item in ranks] == [(0, "n1"), (1, "n2")]
    used = sum(item["user_s"] + item["system_s"] for item in ranks)
    assert used == pytest.approx(finished.measurements.get(metric="cpu_s", scope="all").value)


def it_keeps_the_analysis_and_tells_on_what_it_ran(finished: Trial) -> None:
    analysis = read_analysis(finished)
    assert analysis is not None
    assert analysis["metrics"]["packets"] == sum(analysis["series"]["packets"])
    assert finished.trust in {"good", "degraded"}
    assert finished.command[0] == "mpirun"
    assert "2 virtual hosts" in finished.conditions["oversubscription"]
    assert finished.conditions["ranks_on"] == {"n1": "0", "n2": "1"}
    assert finished.environment is not None
    assert not Lease.objects.exists()


def test_it_runs_a_control_trial_without_capture_and_reports_why_metrics_are_absent(
    run_all: Callable[..., list[Trial]], script_workload: object
) -> None:
    measured, control = run_all(workload="script", control=True)
    assert (measured.state, control.state) == (State.FINISHED, State.FINISHED)
    assert control.kind == "control"
    assert "capture overhead" in control.not_available["packets"]
    assert not control.measurements.filter(metric="packets").exists()
    assert control.measurements.get(metric="script.answer").value == 42


def test_it_does_not_doubt_the_empty_capture_of_a_single_host(
    run_all: Callable[..., list[Trial]], script_workload: object
) -> None:
    (trial,) = run_all(workload="script", sweep={"hosts": [1]})
    assert (trial.state, trial.trust) == (State.FINISHED, "good")
    assert trial.measurements.get(metric="packets", scope="all").value == 0
    assert "one host" in trial.not_available["interarrival_mean_s"]
