"""Counters of hosts in a real trial, from trees that move while it runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from experiments.files import read_counters
from experiments.models import State, Trial
from tests.experiments import factories
from tests.workers.hosts import trees

POWERS_W = {"n1": 100.0, "n2": 60.0}


@pytest.fixture
def meters(tmp_path: Path, settings: Any) -> Path:
    """Trees of two hosts with a package and memory each."""
    settings.COUNTER_TREES = str(tmp_path)
    for host in POWERS_W:
        trees.write(
            tmp_path / host, {**trees.rapl("0", "package-0", 5_000_000), **trees.rapl("0:0", "dram", 7_000_000)}
        )
    return tmp_path


def draw_power(root: Path) -> Callable[[float], None]:
    """Move the meters as hosts of these powers do; memory takes a tenth of it."""

    def step(passed_s: float) -> None:
        for host, watts in POWERS_W.items():
            trees.replace(trees.energy(root / host, "0"), 5_000_000 + round(watts * passed_s * 1e6))
            trees.replace(trees.energy(root / host, "0:0"), 7_000_000 + round(watts / 10 * passed_s * 1e6))

    return step


def values_of(trial: Trial) -> dict[str, float]:
    return dict(trial.measurements.filter(scope="all").values_list("metric", "value"))


def test_a_trial_measures_the_energy_of_its_hosts(
    run_all: Callable[..., list[Trial]], meters: Path, script_workload: Callable[..., None]
) -> None:
    with trees.moving(draw_power(meters)):
        (trial,) = run_all(
            workload="script", parameters={"hosts": 2, "script": "import time; time.sleep(3); print('answer 1')"}
        )
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    values = values_of(trial)
    assert values["power_mean_w"] == pytest.approx(1.1 * sum(POWERS_W.values()), rel=0.4)
    assert values["energy_j"] == pytest.approx(values["energy_package_j"] + values["energy_dram_j"])
    assert values["energy_j"] >= values["power_mean_w"] * values["elapsed_s"]
    assert values["energy_delay_js"] == pytest.approx(values["energy_j"] * values["elapsed_s"])
    assert values["power_host_max_w"] > values["power_host_min_w"]
    assert "energy_gpu_j" not in values
    stored = read_counters(trial)
    assert stored is not None
    assert {host: report["rapl"]["state"] for host, report in stored.items()} == {"n1": "ready", "n2": "ready"}
    samples = json.loads(trial.artifacts.get(name="samples.json").file.read_text())
    watts = [row["package_W"] for row in samples if row["host"] == "n1" and "package_W" in row]
    assert sum(watts) / len(watts) == pytest.approx(POWERS_W["n1"], rel=0.5)
    browser = Client()
    browser.force_login(factories.person("ada", "viewer"))
    page = browser.get(trial.get_absolute_url(), {"tab": "counters"})
    assert page.context["tab"] == "counters"
    assert page.context["host_counters"]["energy"][0]["joules"] == values["energy_j"]
    assert [host for host, _ in page.context["host_counters"]["by_host"]] == ["n1", "n2"]
    rest = browser.get(f"/api/v1/trials/{trial.pk}/").json()
    assert rest["metrics"]["energy_j"] == values["energy_j"]
    assert "NVML" in rest["not_available"]["energy_gpu_j"]
