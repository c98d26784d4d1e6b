"""The text of a report: safe HTML, and errors with their lines."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser

from dashboard.reports.markdown import Part, blocks, parts_of, plain
from dashboard.reports.parts import Source
from experiments.common import budget
from experiments.errors import InvalidSpec


def test_it_finds_parts_on_lines_of_their_own_and_nowhere_in_code() -> None:
    text = (
        "# Title\nwords\n{{ chart water time frozen }}\n`{{ answer a }}`\n\n```\n{{ nothing }}\n```\n{{ table water }}"
    )
    parts = [block for block in blocks(text) if isinstance(block, Part)]
    assert [str(part) for part in parts] == ["{{ chart water time frozen }}", "{{ table water configurations }}"]
    assert [(part.frozen, part.line) for part in parts] == [(True, 3), (False, 9)]
    html = "".join(block for block in blocks(text) if isinstance(block, str))
    assert "<h1>Title</h1>" in html
    assert "{{ nothing }}" in html


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("\n{{ graph water time }}", 2, "no part 'graph'"),
        ("{{ chart water }}", 1, "write {{ chart EXPERIMENT CHART }}"),
        ("{{ table water colours }}", 1, "no table 'colours'"),
        ("a\n\n- {{ chart water time }}", 3, "outside lists"),
        ("see {{ chart water time }}", 1, "a line of its own"),
        ("{{ compare water }}", 1, "2 to 8 experiments"),
        ("{{ compare water water }}", 1, "lists an experiment twice"),
        ("a\n\n![pixel](https://elsewhere.example/x.png)", 3, "images are not allowed"),
        ("{{ }}", 1, "no part ''"),
        ("{{ answer water }}\n" * 61, None, "at most 60"),
    ],
)
def test_it_refuses_what_is_wrong_at_its_line(text: str, line: int | None, words: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        blocks(text)
    error = refused.value.errors[0]
    assert (error.path, error.line) == ("text", line)
    assert words in error.message


def test_all_errors_are_reported_together() -> None:
    with pytest.raises(InvalidSpec) as refused:
        blocks("{{ graph }}\n{{ chart }}\n")
    assert [error.line for error in refused.value.errors] == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt&colon;alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "<javascript:alert(1)>",
        "[x]: javascript:alert(1)\n\n[x]",
        "| <b onclick=x> |\n|---|\n| <svg/onload=x> |",
    ],
)
def test_it_lets_nothing_act(text: str) -> None:
    html = "".join(block for block in blocks(text) if isinstance(block, str))
    tags = html.replace("&lt;", "").replace("&gt;", "")
    for start in ("<script", "<img", "<svg", "<b ", 'href="javascript', 'href="data', "href='"):
        assert start not in tags.lower()


def test_it_writes_any_text_as_words() -> None:
    for text in ("{{ chart a b }}", "# no *heading* | <b>x</b>", "1. `x` [y](z) & <script>", "- ~~a~~ _b_"):
        html = "".join(block for block in blocks(plain(text)) if isinstance(block, str))
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        assert html.strip() == f"<p>{escaped}</p>"


@pytest.mark.parametrize("text", ["[" * 200_000, "![" * 100_000], ids=["links", "images"])
def test_blocks_count_as_processor_time(text: str) -> None:
    """The time grows with the square of the open brackets."""
    with budget.seconds(0.3), pytest.raises(budget.Exhausted):
        blocks(text)


@pytest.mark.parametrize("line", ["{{ compare of=e:a,e:b x }}", "{{ chart a elapsed }}"])
def test_parts_of_a_report_count_as_processor_time(line: str) -> None:
    """Sixty comparisons took each reader minutes, in which nothing was counted."""
    (part,) = parts_of(line)
    with budget.seconds(1e-9), pytest.raises(budget.Exhausted):
        Source(AnonymousUser()).body(part)
