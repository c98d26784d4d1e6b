"""What faces may take from the room's own name."""

from __future__ import annotations

from experiments import selectors


def test_the_public_names_are_these() -> None:
    assert selectors.__all__ == [
        "ConfigurationRow", "Progress", "TrialMark", "apart", "apart_of", "configuration_rows", "neighbours",
        "progress_of", "published_like", "repetitions_of", "running_trials", "swept_parameters", "waiting",
    ]  # fmt: skip
    for name in selectors.__all__:
        assert getattr(selectors, name).__module__ == "experiments.selectors.experiments"
