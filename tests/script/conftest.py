"""A var directory for the scripts, and scripts that are gone after the test."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.config.processes import wait_until_gone
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
    # Whatever happened in the test, nothing may be left soon.
    for script in started:
        if script.process.poll() is None:
            script.end(signal.SIGKILL)
    wait_until_gone(var, timeout_s=40)
