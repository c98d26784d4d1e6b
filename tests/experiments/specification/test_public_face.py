"""What others may take from the room's own name."""

from __future__ import annotations

from experiments import specification


def test_the_public_names_are_these() -> None:
    assert specification.__all__ == [
        "MAX_TRIALS",
        "Capture",
        "ExperimentSpec",
        "Link",
        "parse",
        "parse_yaml",
        "restore",
    ]
    assert all(hasattr(specification, name) for name in specification.__all__)
