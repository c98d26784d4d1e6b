"""The library's quick studies by ``script/run``; complete ones at night."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.library import built_in
from tests.known_needs import known_needs
from tests.script.programs import Script
from tests.words import plain

QUICK = {file.stem: file for file in built_in() if file.stem.endswith("-quick")}
LIMIT_S = 1800
"""Three minutes are what two idle cores take, ten of HPL on ten links; the machine of a test is seldom idle, nothing is about speed."""
SLICE_S = 150
"""Half a minute where nothing else runs."""
FAR_MS = 16


def sliced(
    name: str, directory: Path, sweep: Mapping[str, Any], repetitions: int, parameters: Mapping[str, Any] | None = None
) -> Path:
    """Write the study with fewer values and repetitions, and these parameters."""
    study = {key: value for key, value in yaml.safe_load(QUICK[name].read_text()).items() if key != "goal"}
    assert all(set(values) <= set(study["sweep"][parameter]) for parameter, values in sweep.items())
    file = directory / f"{name}.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                **study,
                "sweep": dict(sweep),
                "repetitions": repetitions,
                "parameters": {**study["parameters"], **(parameters or {})},
            }
        )
    )
    return file


def result_of(
    start: Callable[..., Script], file: Path, directory: Path, timeout_s: float
) -> tuple[dict[str, Any], str]:
    """Run a study; return its result and its output."""
    output = directory / "result.json"
    run = start("run", str(file), "--json", str(output))
    assert run.end(timeout_s=timeout_s) == 0, run.output
    result = json.loads(output.read_text())
    assert {trial["state"] for trial in result["trials"]} == {"finished"}
    assert all(trial["metrics"]["elapsed_s"] > 0 for trial in result["trials"])
    return result, " ".join(plain(run.output).split())


@pytest.mark.parametrize("file", built_in(), ids=lambda file: file.stem)
def test_no_study_runs_its_points_one_after_another(file: Path) -> None:
    assert yaml.safe_load(file.read_text()).get("order") in ("interleaved", "randomised")


@pytest.mark.timeout(SLICE_S + 30)
def test_a_slice_of_the_wide_area_study_ends_with_an_answer(start: Callable[..., Script], tmp_path: Path) -> None:
    sweep = {"link.delay": ["0 ms", f"{FAR_MS} ms"], "message_bytes": ["64 KiB"], "link.loss": ["0 %"]}
    brief = {"repetitions": 30, "time_per_size": "0.5 s"}
    result, output = result_of(start, sliced("wan-pingpong-quick", tmp_path, sweep, 2, brief), tmp_path, SLICE_S)
    answer = result["answer"]
    assert answer["question"] == "network"
    # Tentative where four trials scatter, as on a machine that does something else.
    strength = {"firm": "Conclusive", "moderate": "Tentative"}[answer["strength"]]
    (slope,) = (f for f in answer["figures"] if f["name"] == "seconds per second of delay")
    # A message of 64 KiB does not fit into TCP's first window: there is at least one round trip, of two delays, and not many.
    assert 1.8 < slope["value"] < 8
    assert "ms of delay adds" in output
    assert f"{strength}:" in output


@pytest.mark.nightly
@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("name", QUICK)
def test_a_whole_quick_study_ends_with_an_answer(start: Callable[..., Script], tmp_path: Path, name: str) -> None:
    result, output = result_of(start, QUICK[name], tmp_path, LIMIT_S)
    assert result["answer"]["strength"] != "open", output


@pytest.mark.nightly
@pytest.mark.timeout(LIMIT_S + 60)
def test_messages_and_bytes_of_a_real_ring_are_found_within_ten_per_cent(
    start: Callable[..., Script], tmp_path: Path
) -> None:
    result, _ = result_of(start, QUICK["ring-network-quick"], tmp_path, LIMIT_S)
    values = {figure["name"]: figure["value"] for figure in result["answer"]["figures"]}
    expected = known_needs("ring", result["trials"][0]["parameters"])
    assert values["messages in a row"] == pytest.approx(expected.messages, rel=0.1)
    assert values["sent while nothing else proceeds"] == pytest.approx(expected.frame_bytes, rel=0.1)


@pytest.mark.nightly
@pytest.mark.timeout(LIMIT_S + 60)
def test_link_client_and_server_limit_the_quick_readers_in_turn(start: Callable[..., Script], tmp_path: Path) -> None:
    result, output = result_of(start, QUICK["concurrent-readers-quick"], tmp_path, LIMIT_S)
    limits = {
        f["where"]["link.bandwidth"]: f["value"] for f in result["answer"]["figures"] if f["name"] == "used up first"
    }
    assert limits[1e7] == "link", output
    assert "client CPU" in limits[1e8], output
    assert "server CPU" in limits[1e9], output
    assert not any(f["name"] == "arithmetic limit" for f in result["answer"]["figures"])


@pytest.mark.nightly
@pytest.mark.timeout(LIMIT_S + 60)
def test_a_slow_link_makes_one_host_enough(start: Callable[..., Script], tmp_path: Path) -> None:
    result, output = result_of(start, QUICK["water-slow-link-quick"], tmp_path, LIMIT_S)
    values = {f["name"]: f["value"] for f in result["answer"]["figures"]}
    assert values["enough"] == 1, output
