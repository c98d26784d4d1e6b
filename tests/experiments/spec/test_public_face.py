"""What others may take from the room's own name."""

from __future__ import annotations

from experiments import spec


def test_the_public_names_are_these() -> None:
    assert spec.__all__ == ["MAX_TRIALS", "Capture", "ExperimentSpec", "Link", "parse", "parse_yaml", "restore"]
    assert all(hasattr(spec, name) for name in spec.__all__)
