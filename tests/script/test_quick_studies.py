"""The quick studies as they come with Rankwire, each run to its end by ``script/run``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.library import built_in
from tests.script.programs import Script

QUICK = [file for file in built_in() if file.stem.endswith("-quick")]
EVERY_NIGHT = [pytest.param(file, marks=pytest.mark.nightly) for file in QUICK if file.stem != "water-quick"]
WATER = [file for file in QUICK if file.stem == "water-quick"]
LIMIT_S = 900
"""Three minutes are what two idle cores take; the machine of a test is seldom idle, and nothing here is about speed."""


@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("file", [*WATER, *EVERY_NIGHT], ids=lambda file: file.stem)
def test_it_runs_a_quick_study_to_its_end(start: Callable[..., Script], tmp_path: Path, file: Path) -> None:
    result = tmp_path / "result.json"
    run = start("run", str(file), "--json", str(result))
    assert run.end(timeout_s=LIMIT_S) == 0, run.output
    trials = json.loads(result.read_text())["trials"]
    assert {trial["state"] for trial in trials} == {"finished"}
    assert all(trial["metrics"]["elapsed_s"] > 0 for trial in trials)
