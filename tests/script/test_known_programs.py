"""A program of known truth from specification to cause."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from benchmarks.known_programs.__main__ import SOURCE, build
from benchmarks.known_programs.judge import judge, measured, truth_of
from benchmarks.known_programs.kinds import KINDS, specification
from tests.script.programs import Script

LIMIT_S = 150
"""Twenty seconds on two idle cores."""


@pytest.mark.timeout(LIMIT_S + 30)
def test_an_answer_names_the_sleep_of_ranks(start: Callable[..., Script], session_directory: Path) -> None:
    kind, spec, result = KINDS["sleeping"], session_directory / "sleeping.yaml", session_directory / "sleeping.json"
    build(session_directory)
    spec.write_text(yaml.safe_dump(specification(kind, session_directory / SOURCE.stem)))
    run = start("run", str(spec), "--json", str(result))
    assert run.end(timeout_s=LIMIT_S) == 0, run.output
    found = json.loads(result.read_text())
    judgement = judge(kind, found["answer"], truth_of(kind, measured(found)))
    assert (judgement.verdict, judgement.part) == ("right", "blocked")
