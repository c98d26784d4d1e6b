"""Steps in the history of one configuration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analysis.statistics import HistoryPoint, detect_changes


def _history(levels: list[tuple[float, int]], *, spread: float = 0.02, seed: int = 0) -> list[HistoryPoint]:
    rng = np.random.default_rng(seed)
    return [
        HistoryPoint(level * (1 + spread * z), {"kernel": f"6.{k}", "mpi": "4.1.4"}, f"trial {k}-{i}")
        for k, (level, count) in enumerate(levels)
        for i, z in enumerate(rng.standard_normal(count))
    ]


def test_it_finds_a_step_and_what_changed_with_it() -> None:
    history = detect_changes(_history([(10.0, 20), (11.0, 15)]))
    (change,) = history.changes
    assert change.index == 20
    assert change.label == "trial 1-0"
    assert change.ratio is not None
    assert abs(change.ratio - 1.1) < 0.03
    assert change.environment == {"kernel": ("6.0", "6.1")}
    assert change.explanation == "Changed at the same trial: kernel (6.0 to 6.1)."
    assert history.flagged


def test_a_step_names_the_load_of_the_level_before() -> None:
    points = [replace(point, slowed=n < 12) for n, point in enumerate(_history([(10.0, 12), (8.0, 12)]))]
    (change,) = detect_changes(points).changes
    assert (change.slowed_before, change.slowed) == (12, 0)
    assert change.load == "Other load slowed 12 of 12 trials before."


def test_a_fact_that_older_trials_lack_is_no_change() -> None:
    older = {"kernel": "6.0", "variables.PATH": "/bin", "other_hosts.n2.kernel": "6.1"}
    newer = {**older, "machine.smt": "on", "other_hosts.n2.machine.smt": "off"}
    levels = [10.0] * 6, [20.0] * 6
    facts = (
        [older, older],
        [older, newer],
        [newer, {**newer, "machine.smt": "off"}],
        [newer, {**newer, "variables.X": "1"}],
    )
    changes = []
    for before, after in facts:
        points = [HistoryPoint(v, f) for level, f in zip(levels, (before, after), strict=True) for v in level]
        (change,) = detect_changes(points).changes
        changes.append(change.environment)
    assert changes == [{}, {}, {"machine.smt": ("on", "off")}, {"variables.X": ("absent", "1")}]
    same = [HistoryPoint(10.0 + n % 3, older if n < 10 else newer) for n in range(20)]
    assert detect_changes(same).changes == ()


def test_it_finds_several_steps_and_judges_by_the_last_level() -> None:
    history = detect_changes(_history([(10.0, 15), (12.0, 15), (9.0, 15)]))
    assert [c.index for c in history.changes] == [15, 30]
    assert history.baseline is not None
    assert history.baseline.first == 30
    assert history.baseline.sentence == "Baseline: the 15 trials since trial 2-0, after the last step."
    assert history.latest == "within"


def test_it_finds_no_step_in_noise() -> None:
    steps = [detect_changes(_history([(10.0, 30)], spread=0.05, seed=s)).changes for s in range(100)]
    assert sum(bool(c) for c in steps) <= 4


def test_a_step_that_a_person_expects_is_shown_but_not_flagged() -> None:
    points = _history([(10.0, 12), (13.0, 12)])
    assert detect_changes(points).flagged
    marked = detect_changes(points, expected={12})
    assert [c.expected for c in marked.changes] == [True]
    assert marked.baseline is not None
    assert marked.baseline.first == 12
    assert not marked.flagged


def test_it_does_not_report_a_true_step_too_small_to_matter() -> None:
    points = _history([(10.0, 40), (10.05, 40)], spread=0.0005)
    assert detect_changes(points).changes == ()
    assert len(detect_changes(points, smallest_ratio=1.001).changes) == 1


def test_it_flags_a_newest_trial_outside_of_its_baseline() -> None:
    points = [*_history([(10.0, 20)]), HistoryPoint(14.0)]
    history = detect_changes(points)
    assert history.latest == "above"
    assert history.flagged


def test_the_limits_that_are_shown_are_those_that_flag() -> None:
    history = detect_changes([HistoryPoint(value) for value in (2.2, 2.1, 2.3, 2.0, 2.2, 1.1)])
    assert history.latest == "below"
    assert history.baseline is not None
    assert history.baseline.low is not None
    assert history.baseline.low > 1.1


def test_the_limits_of_a_time_are_positive() -> None:
    history = detect_changes([HistoryPoint(value) for value in (1.2, 5.8, 0.9, 1.1)])
    assert history.baseline is not None
    assert history.baseline.low is not None
    assert history.baseline.low > 0


def test_one_far_trial_is_no_step() -> None:
    points = _history([(10.0, 30)])
    points[14] = HistoryPoint(60.0)
    assert detect_changes(points).changes == ()


def test_it_has_nothing_to_say_of_an_empty_or_short_history() -> None:
    assert detect_changes([]).latest == "no baseline"
    short = detect_changes([HistoryPoint(1.0), HistoryPoint(2.0)])
    assert (short.changes, short.latest, short.flagged) == ((), "no baseline", False)
