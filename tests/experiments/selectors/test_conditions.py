"""Explorer conditions: PostgreSQL agrees with Python, and old forms still work."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from secrets import token_hex
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from experiments.errors import CannotExplore
from experiments.models import Configuration, Experiment, Summary
from experiments.selectors.conditions import condition, read_conditions
from tests.experiments import factories

pytestmark = pytest.mark.django_db

METRICS = ("elapsed_s", "concurrent-readers.job_wall_s")
PARAMETERS = ("molecules", "link.delay", "all_sizes", "staging", "former")
NUMBERS = ("hosts", "ranks", "ranks_per_host", "molecules", "link.delay", "all_sizes", *METRICS)


def store(rows: list[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """Store configurations with these values; return the values by key."""
    experiment = Experiment.objects.first() or factories.experiment()
    configurations = Configuration.objects.bulk_create(
        Configuration(
            experiment=experiment,
            hash=token_hex(32),
            hosts=values["hosts"],
            ranks=values["ranks"],
            parameters={name: value for name, value in values.items() if name not in ("hosts", "ranks", *METRICS)},
        )
        for values in rows
    )
    by_key = {row.pk: values for row, values in zip(configurations, rows, strict=True)}
    medians = [
        (key, metric, values[metric]) for key, values in by_key.items() for metric in METRICS if metric in values
    ]
    Summary.objects.bulk_create(
        Summary(configuration_id=key, metric=metric, scope="all", n=1, median=m, minimum=m, maximum=m, samples=[m])
        for key, metric, m in medians
    )
    return by_key


def answers(text: str, by_key: Mapping[int, Mapping[str, Any]]) -> list[int]:
    """Return the keys of the configurations that the database finds."""
    result = Configuration.objects.filter(pk__in=by_key).filter(condition(read_conditions(text), "all"))
    return sorted(result.values_list("pk", flat=True))


def computed(text: str, by_key: Mapping[int, Mapping[str, Any]]) -> list[int]:
    """Return the keys of the configurations that match in Python."""
    expression = read_conditions(text)

    def holds(values: Mapping[str, Any]) -> bool:
        try:
            return expression(values)
        except ValueError:
            return False

    return [key for key, values in sorted(by_key.items()) if holds(values)]


numbers = st.one_of(st.integers(-3, 6), st.sampled_from([0.5, 0.004, 1e-200, 2.0**70, 512.0]))
stored = st.one_of(numbers, st.booleans(), st.none(), st.sampled_from(["pull", "tree", "4", "Ä", ""]))
rows = st.fixed_dictionaries(
    {"hosts": st.integers(1, 6), "ranks": st.integers(1, 9)},
    optional={
        **dict.fromkeys((*PARAMETERS, "ranks_per_host"), stored),
        **{name: numbers.map(float) for name in METRICS},
    },
)
constants = st.sampled_from(["0", "1", "4", "-2", "0.5", "512", "1e200", "true", "False"])
operands = st.recursive(
    st.sampled_from(NUMBERS) | constants,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        inner.map(lambda operand: f"-{operand}"),
    ),
    max_leaves=4,
)
signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!=", "="])
comparisons = st.one_of(
    st.tuples(operands, signs, operands).map(" ".join),
    st.tuples(operands, signs, operands, signs, operands).map(" ".join),
    st.tuples(st.sampled_from(PARAMETERS), signs, st.sampled_from(["'pull'", "tree", "4", "Ä", "true", "''"])).map(
        " ".join
    ),
    st.tuples(st.sampled_from(PARAMETERS), signs, st.sampled_from(PARAMETERS)).map(" ".join),
    st.tuples(
        st.sampled_from([*NUMBERS, "former", "staging"]),
        st.sampled_from(["in", "not in"]),
        st.lists(constants, min_size=1, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
    ).map(" ".join),
    st.sampled_from(["link.delay >= 4 ms", "elapsed_s < 4000 ms", "not link.delay < 500 ms", "true"]),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda condition: f"not ({condition})"),
    ),
    max_leaves=4,
)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(rows, min_size=1, max_size=6), conditions)
def test_condition_agrees_with_python(rows: list[Mapping[str, Any]], text: str) -> None:
    by_key = store(rows)
    try:
        result = answers(text, by_key)
    except CannotExplore:
        assume(False)
    assert result == computed(text, by_key)


ROWS = [
    {"hosts": 2, "ranks": 4, "ranks_per_host": 2, "molecules": 216, "link.topology": "one site", "elapsed_s": 4.0},
    {"hosts": 4, "ranks": 4, "ranks_per_host": 1, "molecules": 512, "link.topology": "two sites", "elapsed_s": 2.5},
    {"hosts": 4, "ranks": 8, "ranks_per_host": 2, "message_bytes": 2**22, "link.rates": "1 Gbit/s; 100 Mbit/s"},
    {"hosts": 8, "ranks": 8, "staging": "tree", "former": "Gigabit Ethernet", "multicast_rate": 1e8, "elapsed_s": 1.0},
]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("hosts >= 4, elapsed_s < 10", [1, 3]),
        ("hosts >= 4 and not (elapsed_s < 2 s or ranks > 6)", [1]),
        ("elapsed_s * hosts <= 8 s", [0, 3]),
        ("hosts % 4 = 0 and ranks / hosts > 1", [2]),
        ("2 < hosts <= 4", [1, 2]),
        ("hosts in (2, 8)", [0, 3]),
        ("molecules > hosts", [0, 1]),
        ("message_bytes = 4 MiB", [2]),
        ("multicast_rate = 100 Mbit/s", [3]),
        ("elapsed_s != 4", [1, 3]),
        # As the explorer took them before it had a grammar.
        ("ranks_per_host=2", [0, 2]),
        ("link.topology = two sites", [1]),
        ("link.rates = 1Gbit/s; 100 Mbit/s", [2]),
        ("staging = tree, former = Gigabit Ethernet", [3]),
        ("former != Fast Ethernet", [3]),
        (" , hosts = 2 ,, ranks = 4,", [0]),
        ("elapsed_s > 1e0, elapsed_s <= +2.5", [1]),
        ("staging = 'f(x)'", []),
    ],
)
def test_condition_matches_the_expected_configurations(text: str, places: list[int]) -> None:
    by_key = store(ROWS)
    assert answers(text, by_key) == [sorted(by_key)[index] for index in places]
    assert computed(text, by_key) == answers(text, by_key)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hosts", "hosts is not a comparison"),
        ("hosts = many", "hosts is compared with a number, not with 'many'"),
        ("elapsed_s < 4 MiB", "unknown unit 'MiB' for a time"),
        ("link.topology = three sites", "link.topology: must be 'one site', 'two sites' or 'star'"),
        ("(hosts > 2) == (ranks > 4)", "join comparisons by and, or, not"),
        ("hosts in (ranks, 4)", "needs values in brackets"),
        ("1 < 2", "one side needs a name"),
        ("hosts > 2 and", "cannot be read to its end"),
        ("hosts" + " + hosts" * 30 + " > 2 and " + "ranks" + " + ranks" * 30 + " > 2", "more than 50 calculations"),
        ("hosts + " * 120 + "1 > 2", "nested too deeply"),
    ],
)
def test_read_conditions_refuses_with_a_reason(text: str, sentence: str) -> None:
    with pytest.raises(CannotExplore, match=re.escape(sentence)) as caught:
        read_conditions(text)
    assert caught.value.field == "where"


def test_conditions_that_are_too_long_are_refused_before_their_names_are_read() -> None:
    """A name of n hyphens may be n names: 60 kB took ten seconds and a gigabyte."""
    begun = time.process_time()
    with pytest.raises(CannotExplore, match="longer than 1000 characters"):
        read_conditions("a-" * 10_000)
    assert time.process_time() - begun < 0.5
