"""YAML with line numbers."""

import pytest

from experiments.errors import InvalidSpec
from experiments.specification.yaml_lines import MAX_BYTES, YamlDocument

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
        ("name: 'Water", "not valid YAML", 1),
        ("a: 1\n\tb: 2", "not valid YAML", 2),
        ("a: 1\n---\nb: 2", "not valid YAML", 2),
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


def test_it_reads_an_empty_text_as_nothing() -> None:
    document = YamlDocument("# nothing\n")
    assert document.data is None
    assert document.line("name") is None
