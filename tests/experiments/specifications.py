"""The specification that the tests of this package vary."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.errors import InvalidSpec
from experiments.specification import ExperimentSpec, parse


def written(**changes: Any) -> dict[str, Any]:
    """Return a small valid specification with ``changes``."""
    return {
        "name": "Water",
        "workload": "water",
        "parameters": {"molecules": 64, "steps": 10},
        "sweep": {"hosts": [1, 2]},
        "repetitions": 2,
        **changes,
    }


def specification(**changes: Any) -> ExperimentSpec:
    return parse(written(**changes))


def errors_of(*, max_trials: int = 10_000, **changes: Any) -> dict[str, list[str]]:
    """Return path -> messages of a specification that must be refused."""
    with pytest.raises(InvalidSpec) as caught:
        parse(written(**changes), max_trials=max_trials)
    return caught.value.by_path()
