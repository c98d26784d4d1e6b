"""The tuning ladder on the published tests, and on designs of known truth."""

import pytest

from analysis.conclusions.observations.ladder import Trialled, effects, joint_effects, ladder

PUBLISHED = [
    (34, 4, "1x8", "ATLAS", "default", 0.0084),
    (10000, 144, "1x8", "ATLAS", "default", 10.6),
    (11500, 240, "1x8", "ATLAS", "default", 11.51),
    (11500, 240, "2x4", "ATLAS", "default", 12.74),
    (11500, 240, "2x4", "ATLAS", "tuned", 13.26),
    (11500, 240, "2x4", "ACML", "tuned", 11.45),
    (12300, 180, "2x4", "ATLAS", "tuned, MTU 6000", 14.53),
    (12300, 180, "2x4", "ATLAS", "Fast Ethernet", 7.45),
]
NAMES = ("ns", "nb", "grid", "blas", "ethernet")


def published():
    return [
        Trialled({"test": number, **dict(zip(NAMES, row[:-1], strict=True))}, [row[-1]])
        for number, row in enumerate(PUBLISHED, start=1)
    ]


def test_it_writes_down_the_published_tests_step_by_step():
    steps = ladder(published(), higher_is_better=True)
    assert [list(step.changed) for step in steps] == [
        [],
        ["ns", "nb"],
        ["ns", "nb"],
        ["grid"],
        ["ethernet"],
        ["blas"],
        ["ns", "nb", "blas", "ethernet"],
        ["ethernet"],
    ]
    assert [step.is_best_so_far for step in steps] == [True, True, True, True, True, False, True, False]
    assert steps[3].against_previous.factor == pytest.approx(12.74 / 11.51)
    assert steps[6].against_first.factor == pytest.approx(14.53 / 0.0084)
    assert steps[-1].best_so_far == 14.53
    assert steps[3].against_previous.interval is None, "one printed value has no spread"


def test_it_takes_less_time_as_better_and_gives_repetitions_intervals():
    first = Trialled({"nb": 80}, [2.0, 2.1, 2.05])
    second = Trialled({"nb": 160}, [1.0, 1.05, 1.02])
    step = ladder([first, second], higher_is_better=False)[1]
    assert step.against_previous.factor == pytest.approx(2.05 / 1.02)
    assert step.against_previous.interval.low < step.against_previous.factor < step.against_previous.interval.high
    assert step.is_best_so_far


def square(together):
    values = {(1, 1): 10.0, (2, 1): 12.0, (1, 2): 15.0, (2, 2): together}
    return [Trialled({"p": p, "nb": nb, "ns": 1000}, [value]) for (p, nb), value in values.items()]


def test_it_finds_every_pair_that_differs_in_nothing_else():
    by_parameter = {effect.parameter: effect for effect in effects(square(18.0), higher_is_better=True)}
    assert by_parameter["p"].gain == pytest.approx(1.2)
    assert by_parameter["nb"].gain == pytest.approx(1.5)
    assert by_parameter["p"].pairs == 2
    assert not by_parameter["p"].depends
    assert (by_parameter["p"].before, by_parameter["p"].after) == (1, 2)


def test_it_finds_independent_changes_to_multiply():
    (joint,) = joint_effects(square(18.0), higher_is_better=True)
    assert joint.parameters == ("p", "nb")
    assert (joint.together, joint.product) == (pytest.approx(1.8), pytest.approx(1.8))
    assert not joint.dependent


def test_it_recognises_dependent_changes():
    points = square(9.0)
    (joint,) = joint_effects(points, higher_is_better=True)
    assert joint.dependent
    assert joint.interaction == pytest.approx(0.5)
    assert next(e for e in effects(points, higher_is_better=True) if e.parameter == "p").depends


def test_it_counts_a_square_once_whatever_the_order():
    points = square(18.0)
    for order in ([3, 2, 1, 0], [1, 0, 3, 2], [2, 0, 1, 3]):
        (joint,) = joint_effects([points[i] for i in order], higher_is_better=True)
        assert joint.squares == 1
        assert joint.interaction == pytest.approx(1.0)


def test_it_averages_a_cube_over_the_third():
    points = [
        Trialled({"a": a, "b": b, "c": c}, [2.0**a * 3.0**b * 5.0**c]) for a in (0, 1) for b in (0, 1) for c in (0, 1)
    ]
    assert [(e.parameter, round(e.gain, 6), e.pairs) for e in effects(points, higher_is_better=True)] == [
        ("c", 5.0, 4),
        ("b", 3.0, 4),
        ("a", 2.0, 4),
    ]
    assert {j.parameters: j.squares for j in joint_effects(points, higher_is_better=True)} == {
        ("b", "c"): 2,
        ("a", "c"): 2,
        ("a", "b"): 2,
    }


def test_it_refuses_a_value_that_is_not_positive():
    with pytest.raises(ValueError, match="positive"):
        ladder([Trialled({"a": 1}, [0.0]), Trialled({"a": 2}, [1.0])], higher_is_better=True)
