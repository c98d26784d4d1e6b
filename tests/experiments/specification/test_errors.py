"""Errors of a bad specification: at its field, with the line in YAML."""

from typing import Any

import pytest

from experiments.errors import InvalidSpec
from experiments.specification import parse, parse_yaml, restore
from tests.experiments.specifications import errors_of, written


def weak(**changes: Any) -> dict[str, Any]:
    """Return changes for weak scaling, which needs a zip group or a filter."""
    swept = {"hosts": [1, 2, 4], "steps": [10, 20, 40]}
    return {"parameters": {}, "sweep": swept, "scaling": "weak", "grows_with_hosts": "steps", **changes}


@pytest.mark.parametrize(
    ("changes", "path", "sentence"),
    [
        ({"name": ""}, "name", "is empty: enter a name"),
        ({"name": "  "}, "name", "is empty: enter a name"),
        ({"name": 5}, "name", "must be text"),
        ({"name": "a\0b"}, "name", "not text"),
        ({"name": "a\ud800b"}, "name", "not text"),
        ({"name": "x" * 121}, "name", "must have at most 120"),
        ({"colour": "red"}, "colour", "not a known field"),
        ({"workload": "fire"}, "workload", "unknown workload 'fire'; known: water"),
        ({"parameters": {"atoms": 3}}, "parameters.atoms", "unknown parameter 'atoms'"),
        ({"parameters": {"stps": 3}}, "parameters.stps", "of TIP4P water; did you mean steps?"),
        ({"parameters": {"molecules": "many"}}, "parameters.molecules", "whole number"),
        ({"parameters": {"molecules": 64.5}}, "parameters.molecules", "whole number"),
        ({"parameters": {"molecules": 262_139}}, "parameters.molecules", "try 262132 or 262143"),
        ({"parameters": {"steps": -3}}, "parameters.steps", "greater than or equal to 1, not -3"),
        ({"parameters": {"steps": True}}, "parameters.steps", "must be a number, not true"),
        ({"parameters": {"steps": 2**70}}, "parameters.steps", "too large"),
        ({"parameters": {"temperature": float("nan")}}, "parameters.temperature", "finite number, not nan"),
        ({"parameters": {"temperature": [[300]]}}, "parameters.temperature", "must be a number"),
        ({"parameters": {"link.delay": 1}}, "parameters.link.delay", "belongs under link:"),
        ({"parameters": {5: 1}}, "parameters", "field name 5 is not text"),
        ({"parameters": [1]}, "parameters", "mapping"),
        ({"sweep": {"hosts": [0, 1]}}, "sweep.hosts", "1 or more, not 0"),
        ({"sweep": {"hosts": ["1-4"]}}, "sweep.hosts", "'1-4' is not a whole number; a range is 1..4"),
        ({"sweep": {"hosts": "2, 1..x4"}}, "sweep.hosts", "'1..x4' is not a range: write 1..8, 1..8 step 2 or 1..8 x2"),
        ({"sweep": {"hosts": "4 8 1"}}, "sweep.hosts", "'4 8 1' is not a whole number; a list is 4, 8, 1"),
        ({"sweep": {"hosts": "1;2"}}, "sweep.hosts", "'1;2' is not a whole number; a list is 1, 2"),
        ({"sweep": {"hosts": [1.5]}}, "sweep.hosts", "1.5 is not a whole number"),
        ({"sweep": {"hosts": []}}, "sweep.hosts", "no values: enter a list such as 2, 4, 8 or a range such as 2..12/2"),
        ({"sweep": {"link.delay": "1 KiB..4 KiB x2"}}, "sweep.link.delay", "unknown unit 'KiB' for a time"),
        ({"sweep": {"link.delay": "1 ms..4 KiB x2"}}, "sweep.link.delay", "units of different kinds: ms and KiB"),
        ({"sweep": {"molecules": [64, 125]}}, "sweep.molecules", "is under parameters: too"),
        ({"sweep": {"hosts": [4096], "ranks_per_host": [1024]}}, "sweep.hosts", "4194304 ranks"),
        ({"sweep": {"link.bandwidth": ["1 Gbit/s", "1000 Mbit/s"]}}, "sweep.link.bandwidth", "are the same value"),
        ({"sweep": {"link.bandwidth": ["1 lightyear"]}}, "sweep.link.bandwidth", "unknown unit 'lightyear'"),
        ({"sweep": {"link.jitter": ["1 ms", "9 ms"]}, "link": {"delay": "4 ms"}}, "sweep.link.jitter", "jitter"),
        ({"link": {"mtu": "1500.5 B"}}, "link.mtu", "whole number"),
        ({"link": {"colour": 1}}, "link.colour", "not a known field; known: bandwidth, delay, "),
        ({"link": {"latency": "1 ms"}}, "link.latency", "not a known field; known: bandwidth, delay, "),
        ({"link": {"dely": "1 ms"}}, "link.dely", "not a known field; did you mean delay?"),
        ({"repetition": 3}, "repetition", "not a known field; did you mean repetitions?"),
        ({"capture": {"snap_length": 12}}, "capture.snap_length", "96"),
        ({"repetitions": 0}, "repetitions", "greater than or equal to 1"),
        ({"repetitions": "few"}, "repetitions", "whole number"),
        ({"order": "backwards"}, "order", "'sequential', 'interleaved' or 'randomised'"),
        ({"control": "perhaps"}, "control", "true or each"),
        ({"control": 1001}, "control", "up to 1000"),
        ({"control": -1}, "control", "up to 1000"),
        ({"time_limit_s": 0}, "time_limit_s", "greater than 0"),
        ({"time_limit_s": "1e999999999 h"}, "time_limit_s", "too large"),
        ({"tags": ["fine", ""]}, "tags.1", "is empty"),
        ({"sweep": {"hosts": "2..4, 3"}}, "sweep.hosts", "3 is given more than once"),
        (
            {"sweep": {"hosts": [1, 2, 1], "steps": [10, 20, 10]}, "zip": [["hosts", "steps"]]},
            "zip.0",
            "steps 1 and 3 are the same",
        ),
        ({"zip": [["hosts", "steps"]]}, "zip.0", "'steps' is not swept"),
        ({"zip": [["hosts"]]}, "zip.0", "two or more"),
        ({"where": "hosts > 99"}, "where", "leaves no configuration"),
        ({"where": "host > 1"}, "where", "unknown parameter 'host'"),
        ({"where": "link.delay < 2 KiB"}, "where", "unknown unit 'KiB' for a time"),
        ({"sweep": {"ranks": [1, 2]}}, "sweep.ranks", "unknown parameter 'ranks'"),
        ({"where": "__import__('os')"}, "where", "not allowed"),
        ({"where": "hosts / 0 > 1"}, "where", "cannot be computed"),
        ({"scaling": "weak"}, "grows_with_hosts", "weak scaling must name"),
        ({"deciding": "loop_time"}, "deciding", "similar: water.loop_time_s"),
        ({"deciding": "water.ns_per_dya"}, "deciding", "not a metric of workload 'water'; similar: water.ns_per_day"),
        ({"deciding": "hpl.gflops"}, "deciding", "not a metric of workload 'water'"),
        ({"deciding": "zzzzz"}, "deciding", "known: water.loop_time_s, water.ns_per_day"),
        ({"deciding": "hurst"}, "deciding", "neither more nor less of it is better"),
        (
            {"workload": "command", "sweep": {}, "deciding": "command.t_s"}
            | {"parameters": {"program": ["true"], "extract": [{"name": "t_s", "regex": "(1)", "direction": "neutral"}]}},
            "deciding",
            "neither more nor less of it is better",
        ),
        ({"grows_with_hosts": "steps"}, "grows_with_hosts", "'steps' is not swept"),
        ({"scaling": "weak", "grows_with_hosts": "hosts"}, "grows_with_hosts", "'hosts' is not a size of the problem"),
        (weak(sweep={"link.mtu": [1500, 9000]}, grows_with_hosts="link.mtu"), "grows_with_hosts", "name a parameter"),
        (weak(sweep={"steps": [10, 20]}), "sweep", "needs several numbers of hosts: sweep hosts together with steps"),
        (weak(sweep={"hosts": [2], "steps": [10]}), "sweep.hosts", "at least two numbers of hosts"),
        (weak(), "grows_with_hosts", "steps is 10 and 20 at 1 host; let it advance with the hosts: zip: [[hosts, steps]]"),
        (weak(zip=[["hosts", "steps"]], where="hosts < 2"), "sweep.hosts", "at least two numbers of hosts"),
        (
            weak(sweep={"hosts": [4, 1], "steps": [10, 20]}, zip=[["hosts", "steps"]]),
            "grows_with_hosts",
            "steps does not grow: it is 20 at 1 host and 10 at 4 hosts",
        ),
        (
            weak(
                workload="data-staging",
                sweep={"hosts": [2, 3], "staging": ["pull", "tree"]},
                zip=[["hosts", "staging"]],
                grows_with_hosts="staging",
            ),
            "grows_with_hosts",
            "staging is 'pull' at 2 hosts; only a number can grow",
        ),
    ],
)  # fmt: skip
def test_parse_reports_errors_at_their_fields(changes: dict[str, Any], path: str, sentence: str) -> None:
    errors = errors_of(**changes)
    assert path in errors, errors
    assert sentence in errors[path][0]


@pytest.mark.parametrize(
    "changes",
    [
        {"zip": [["hosts", "steps"]]},
        {"where": "steps == 10 * hosts"},
        {
            "zip": [["hosts", "steps"]],
            "sweep": {"hosts": [4, 1], "steps": [40, 20], "link.bandwidth": ["1 Gbit/s", "100 Mbit/s"]},
        },
    ],
)
def test_parse_accepts_weak_scaling_of_growing_problems(changes: dict[str, Any]) -> None:
    assert parse(written(**weak(**changes))).grows_with_hosts == "steps"


def test_it_reads_a_stored_weak_scaling_that_it_would_refuse_today() -> None:
    assert restore(written(**weak())).scaling == "weak"


def test_parse_reports_groups_of_unequal_length() -> None:
    errors = errors_of(sweep={"hosts": [1, 2], "ranks_per_host": [1, 2, 3]}, zip=[["hosts", "ranks_per_host"]])
    assert errors == {
        "zip.0": ["parameters that advance together need equally many values: hosts has 2, ranks_per_host has 3"]
    }


def test_parse_reports_several_errors_at_once() -> None:
    assert set(errors_of(parameters={"steps": -1, "atoms": 1}, sweep={"hosts": [0]})) == {
        "parameters.steps",
        "parameters.atoms",
        "sweep.hosts",
    }


def test_parse_refuses_more_wrong_tags_than_reported_errors() -> None:
    with pytest.raises(InvalidSpec) as error:
        parse({"name": "x", "tags": [1] * 120})
    assert len(error.value.errors) == 100


def test_parse_refuses_more_trials_than_the_limit() -> None:
    errors = errors_of(max_trials=5, sweep={"hosts": "1..3"}, repetitions=2)
    assert errors == {"sweep": ["more than the limit of 5 trials; take fewer values or fewer repetitions"]}
    assert parse(written(sweep={"hosts": "1..3"}), max_trials=6).repetitions == 2


def test_it_refuses_endless_combinations_without_walking_them() -> None:
    errors = errors_of(
        max_trials=50,
        parameters={},
        sweep={"hosts": "1..1000", "steps": "1..1000", "ranks_per_host": "1..1000"},
        where="hosts < 0",
    )
    assert errors == {"sweep": ["more than 1000 combinations; take fewer values"]}


@pytest.mark.parametrize("data", [None, 5, "water", [], True])
def test_parse_refuses_other_data_than_a_mapping(data: Any) -> None:
    with pytest.raises(InvalidSpec, match="mapping of fields"):
        parse(data)


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("workload: water", "name", 1),
        ("name: Water\nworkload: fire", "workload", 2),
        ("name: Water\nworkload: water\nparameters:\n  steps: 5\n  atoms: 3", "parameters.atoms", 5),
        ("name: Water\nworkload: water\nsweep:\n  hosts: [0]", "sweep.hosts", 4),
        ("name: Water\nworkload: water\n\nlink:\n  delay: 1 parsec", "link.delay", 5),
        ("name: Water\nworkload: water\nwhere: hosts > 2", "where", 3),
        ("name: Water\nworkload: water\nrepetitions: 0x" + "f" * 6000, "", 3),
    ],
)
def test_it_adds_the_line_to_errors_in_yaml(text: str, path: str, line: int) -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_yaml(text)
    assert [(e.path, e.line) for e in caught.value.errors] == [(path, line)]


def test_wrong_values_are_reported_together_with_wrong_fields() -> None:
    errors = errors_of(name="", goal={"until": "x"}, sweep={"hosts": "1, zwei, 4"}, parameters={"steps": -3})
    assert {"name", "sweep.hosts", "parameters.steps"} <= errors.keys()
    assert errors["sweep.hosts"] == ["'zwei' is not a whole number"]
    # A refused group could hold what makes the repeated values right.
    assert errors_of(zip="x", sweep={"hosts": [1, 1]}).keys() == {"zip"}
    assert errors_of(workload=5, sweep={"hosts": [0]}).keys() == {"workload"}


@pytest.mark.parametrize("written_capture", ["false", "'off'", "{enabled: false}"])
def test_capture_is_switched_off_by_every_spelling_that_is_advised(written_capture: str) -> None:
    text = "name: A\nworkload: water\nsweep: {hosts: [1]}\ncapture: "
    assert not parse_yaml(text + written_capture).capture.enabled
    with pytest.raises(InvalidSpec, match="write false or 'off'"):
        parse_yaml(f"{text}off")
    with pytest.raises(InvalidSpec, match="capture: must be a mapping of fields, not 'never'"):
        parse_yaml(f"{text}never")
