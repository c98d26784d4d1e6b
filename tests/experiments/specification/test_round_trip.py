"""A specification as plain data and back."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.library import built_in
from experiments.models.experiment import specification_hash
from experiments.specification import parse, parse_yaml, restore
from experiments.specification.yaml_lines import dump
from tests.experiments.specifications import specification, written

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
_NAME = _TEXT.filter(lambda text: text.strip() != "")
_SWEEPS = {
    "hosts": st.lists(st.integers(1, 64), min_size=1, max_size=3, unique=True),
    "ranks_per_host": st.sampled_from(["1..4 x2", "1..3", [1, 2], 2]),
    "temperature": st.lists(st.floats(1, 2000), min_size=1, max_size=3, unique=True),
    "link.delay": st.sampled_from([["1 ms", "2 ms"], "4 ms, 8 ms", "1 ms..16 ms x2", [0, 0.016]]),
    "link.bandwidth": st.sampled_from([["1 Gbit/s", "300 Mbit/s"], ["100..300 step 100 Mbit/s"], [1e8]]),
}


@st.composite
def specifications(draw: st.DrawFn) -> dict[str, Any]:
    """Valid specifications as people write them."""
    swept = draw(st.sets(st.sampled_from(sorted(_SWEEPS)), max_size=3))
    return {
        "name": draw(_NAME),
        "description": draw(_TEXT),
        "tags": draw(st.lists(_NAME.map(lambda text: text[:40]), max_size=3)),
        "workload": "water",
        "parameters": {"molecules": draw(st.sampled_from([64, 216, 512])), "steps": draw(st.integers(1, 1000))},
        "sweep": {name: draw(_SWEEPS[name]) for name in swept},
        "link": {"mtu": draw(st.sampled_from([1500, "9000 B"])), "loss": draw(st.sampled_from([0, "0.1 %", 0.5]))},
        "repetitions": draw(st.integers(1, 5)),
        "warmups": draw(st.integers(0, 2)),
        "control": draw(st.sampled_from([True, False, "each", 0, 1, 3])),
        "order": draw(st.sampled_from(["sequential", "interleaved", "randomised"])),
        "seed": draw(st.integers(0, 2**31 - 1)),
        "time_limit_s": draw(st.sampled_from([1, "2 min", 0.5])),
        "retries": draw(st.integers(0, 10)),
        "disturbed": draw(st.sampled_from(["repeat", "keep"])),
        "deciding": draw(st.sampled_from([None, "elapsed_s", "water.ns_per_day"])),
    }


@settings(max_examples=25)
@given(specifications())
def test_it_loses_nothing_as_json_or_yaml(data: dict[str, Any]) -> None:
    spec = parse(data)
    plain = spec.to_dict()
    assert parse(json.loads(json.dumps(plain))) == spec
    assert parse_yaml(json.dumps(plain)) == spec
    assert parse_yaml(dump(plain)) == spec
    assert restore(plain) == spec
    assert parse(plain).to_dict() == plain


def test_it_leaves_defaults_out() -> None:
    assert specification(repetitions=3, order="interleaved").to_dict() == {
        "name": "Water",
        "workload": "water",
        "parameters": {"molecules": 64, "steps": 10},
        "sweep": {"hosts": [1, 2]},
    }


def test_it_hashes_equal_specifications_equally() -> None:
    reordered = dict(reversed(list(written().items())))
    assert specification_hash(parse(reordered)) == specification_hash(specification())
    assert specification_hash(specification(repetitions=4)) != specification_hash(specification())


def test_it_reads_every_built_in_experiment() -> None:
    files = built_in()
    assert {"water-quick", "water-full"} <= {file.stem for file in files}
    for file in files:
        parse_yaml(file.read_text())
