"""YAML with line numbers."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.errors import InvalidSpec
from experiments.specification.yaml_lines import MAX_BYTES, YamlDocument, dump

TEXT = """\
# a comment
name: Water
workload: water

parameters:
  molecules: 64
sweep:
  hosts:
    - 1
    - 2
  link.delay: [1 ms, 2 ms]
link:
  loss: 1 %
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("name", 2),
        ("parameters", 5),
        ("parameters.molecules", 6),
        ("sweep.hosts", 8),
        ("sweep.hosts.1", 10),
        ("sweep.link.delay", 11),
        ("link.loss", 13),
        ("link.bandwidth", 12),  # not written: its nearest parent
        ("repetitions", 1),
        ("", 1),
    ],
)
def test_it_knows_the_line_of_every_field(path: str, line: int) -> None:
    assert YamlDocument(TEXT).line(path) == line


def test_it_reads_json_too() -> None:
    document = YamlDocument('{"name": "Water",\n "sweep": {"hosts": [1, 2]}}')
    assert document.data == {"name": "Water", "sweep": {"hosts": [1, 2]}}
    assert document.line("sweep.hosts") == 2


def test_it_joins_the_two_halves_that_json_escapes() -> None:
    assert YamlDocument(r'{"name": "\ud83d\ude00 é"}').data == {"name": "😀 é"}


def test_it_leaves_dates_as_text() -> None:
    assert YamlDocument("name: 2024-13-45").data == {"name": "2024-13-45"}


@pytest.mark.parametrize(
    ("text", "sentence", "line"),
    [
        ("name: Water\nname: Fire", "is given twice", 2),
        ("a: &x [1]\nb: *x", "aliases", 2),
        ("name: !!python/object/apply:os.system [true]", "tags", 1),
        ("a: 1\nb: !!timestamp x", "tags", 2),
        ("a: !!bool perhaps", "tags", 1),
        ("[a, b]: 1", "plain text", 1),
        ("name: 'Water", "not valid YAML: a quote or a bracket is not closed", 1),
        ("name: Water\n  workload: water", "not valid YAML: check indentation and colons", 2),
        ("sweep:\n  hosts: [1]\n zip: []", "not valid YAML: check the indentation", 3),
        ("hosts: [1, 2\nrepetitions: 3", "not valid YAML: a list or a mapping in brackets is not closed", 1),
        ("a: 1\n\tb: 2", "not valid YAML: indent with spaces", 2),
        ("a: 1\n---\nb: 2", "not valid YAML: more than one document", 2),
        ("[" * 1000, "nested too deeply", None),
        ("name: a\0b", "not valid YAML", None),
        ("x" * (MAX_BYTES + 1), "larger than", None),
    ],
)
def test_it_refuses_with_the_line(text: str, sentence: str, line: int | None) -> None:
    with pytest.raises(InvalidSpec) as caught:
        YamlDocument(text)
    (error,) = caught.value.errors
    assert sentence in error.message
    assert error.line == line


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("8", 8),
        ("-8", -8),
        ("007", 7),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("1.5E+3", 1500.0),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("", None),
        ("Null", None),
        ("2024-05-01", "2024-05-01"),
        ("00:11:22:33:44:55", "00:11:22:33:44:55"),
        ("n1:4", "n1:4"),
        ("1.2.3", "1.2.3"),
        ("y", "y"),
        ("'010'", "010"),
        ("'yes'", "yes"),
        ("<<", "<<"),
        ("=", "="),
    ],
)
def test_yaml_document_reads_words_by_the_core_schema(word: str, value: object) -> None:
    read = YamlDocument(f"a: {word}").data["a"]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("word", "plain"),
    [
        ("yes", "true"),
        ("No", "false"),
        ("ON", "true"),
        ("off", "false"),
        ("010", "8"),
        ("-010", "-8"),
        ("08", "8"),
        ("0o10", "8"),
        ("0b11", "3"),
        ("+0x1F", "31"),
        ("0x1_F", "31"),
        ("1_000", "1000"),
        ("1_0.5", "10.5"),
        ("1:2", "62"),
        ("1:30.5", "90.5"),
        ("190:20:30", "685230"),
    ],
)
def test_yaml_document_refuses_a_word_that_versions_of_yaml_read_differently(word: str, plain: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        YamlDocument(f"b:\n- {word}")
    (error,) = caught.value.errors
    assert error.line == 2
    assert f"write {plain} or '{word}'" in error.message
    assert YamlDocument(f"{word}: 1").data == {word: 1}, "a name is text"


@pytest.mark.parametrize(
    "word", ["1e999", "-1e999", "1e-999", "0.0000001e-400", "0x_", "0b_", "1:" * 300 + "1.5", "1:" * 90_000 + "1"]
)
def test_yaml_document_refuses_numbers_that_none_holds(word: str) -> None:
    with pytest.raises(InvalidSpec):
        YamlDocument(f"a: {word}")


@pytest.mark.parametrize(
    ("written", "words"),
    [("4.10", ["4.10"]), ("[1, 1.0, 1.10, 007]", ["1.10", "007"]), ("'4.10'", []), ("1e3", ["1e3"]), ("{b: 007}", [])],
)
def test_altered_yields_the_numbers_that_text_would_lose(written: str, words: list[str]) -> None:
    document = YamlDocument(f"a: {written}")
    assert [error.message.split()[2] for error in document.altered("a", "a.c", "d")] == words


_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
    | st.from_regex(r"[-+]?[0-9_.:xobeE]{1,8}", fullmatch=True)
    | st.sampled_from(
        ["yes", "No", "on", "~", "null", "true", "1e3", "010", "1:2", "4.10", "=", "<<", "a\nb\n", " a", "#"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab1.:#x ", max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(["name", "on", "010", "4.10"]), _PLAIN, max_size=3))
def test_dump_writes_what_yaml_document_reads(data: dict[str, Any]) -> None:
    read = YamlDocument(dump(data)).data
    assert json.dumps(read) == json.dumps(data)
    assert json.dumps(YamlDocument(json.dumps(data)).data) == json.dumps(data)


def test_it_reads_an_empty_text_as_nothing() -> None:
    document = YamlDocument("# nothing\n")
    assert document.data is None
    assert document.line("name") is None
