"""Counters of hosts in a real trial, from trees that move while it runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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


def draw_power(root: Path, powers_w: Mapping[str, float] = POWERS_W) -> Callable[[float], None]:
    """Move the meters as hosts of these powers do; memory takes a tenth of it."""

    def step(passed_s: float) -> None:
        for host, watts in powers_w.items():
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
    assert not [name for name, _ in page.context["conditions"] if name.startswith("Metric sources")]
    rest = browser.get(f"/api/v1/trials/{trial.pk}/").json()
    assert rest["metrics"]["energy_j"] == values["energy_j"]
    assert rest["metric_sources"]["energy_j"] == {"source": "Energy, processor (RAPL)", "trust": "measured"}
    assert "metric_sources" not in rest["conditions"]
    assert "NVML" in rest["not_available"]["energy_gpu_j"]


def test_energy_decides_from_the_trials_to_answer_compare_and_explore(
    run_all: Callable[..., list[Trial]], meters: Path, script_workload: Callable[..., None]
) -> None:
    """The second host draws so much that no scatter of a busy machine hides it."""
    with trees.moving(draw_power(meters, {"n1": 10.0, "n2": 2000.0})):
        trials = run_all(
            workload="script",
            parameters={"script": "import time; time.sleep(1.5); print('answer 1')"},
            sweep={"hosts": [1, 2]},
            repetitions=3,
            deciding="energy_j",
        )
    assert {trial.state for trial in trials} == {State.FINISHED}, [trial.message for trial in trials]
    experiment = trials[0].experiment
    browser = Client()
    browser.force_login(factories.person("ada", "viewer"))
    answer = browser.get(f"/api/v1/experiments/{experiment.slug}/findings/").json()["answer"]
    figures = {(figure["name"], figure["where"].get("hosts")): figure for figure in answer["figures"]}
    assert answer["strength"] == "firm"
    assert figures["best size", None]["value"] == 1
    one, two = figures["Energy", 1], figures["Energy", 2]
    assert one["unit"] == "J"
    assert one["low"] < one["value"] < one["high"] < two["low"]
    parts = browser.get(f"/experiments/{experiment.slug}/parts/").context["parts"]
    (energy,) = [part for part in parts if part.element == "energy"]
    assert energy.context["trials"] == energy.context["of"] == 6
    configurations = [f"c:{configuration.pk}" for configuration in experiment.configurations.order_by("pk")]
    compared = browser.get("/api/v1/compare/", {"of": ",".join(configurations)}).json()
    (row,) = [row for row in compared["metrics"] if row["metric"] == "energy_j"]
    assert row["comparisons"][1]["words"] == "worse"
    assert row["comparisons"][1]["ratio_interval"]["low"] > 1
    explored = browser.get("/api/v1/explore/", {"workload": "script", "y": "energy_delay_js", "x": "hosts"}).json()
    assert [cell["trials"] for cell in explored["cells"]] == [3, 3]
    assert explored["cells"][0]["interval"][1] < explored["cells"][1]["interval"][0]
    exported = browser.get("/api/v1/explore/export/json/", {"workload": "script", "y": "energy_j", "rows": "trials"})
    joules = {row["trial"]: row["energy_j"] for row in json.loads(exported.getvalue())}
    assert joules == {trial.pk: values_of(trial)["energy_j"] for trial in trials}
