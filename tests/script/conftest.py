"""A var directory for the scripts, and scripts that are gone after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.script.programs import Script


@pytest.fixture(scope="module")
def var(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("installation") / "var"


@pytest.fixture
def start(var: Path) -> Iterator[Callable[..., Script]]:
    started: list[Script] = []

    def start_script(*argv: str, **options: Path) -> Script:
        started.append(Script(var, *argv, **options))
        return started[-1]

    yield start_script
    for script in started:
        script.end_without_a_trace()
