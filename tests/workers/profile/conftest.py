"""Programs that use MPI, built once for all tests of the profile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workers.profile.ranks import built


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The program of a source in `programs/`."""
    into = tmp_path_factory.mktemp("programs")
    return lambda name: built(name, into)
