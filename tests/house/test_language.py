"""Language of texts: words of the field, short documents, spelling.

Checked are documents, templates, docstrings, comments and sentences in strings; identifiers are not.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.services.lease import ROOT
from tests.house.repository import tracked

NOT_CHECKED = (
    "benchmarks/notes/november-2026.md",  # a diary
    "tests/house/test_language.py",
    "experiments/migrations/",
)
GENERATED = ("docs/reference/metrics.md", "docs/reference/terms.md")
"""Reference pages that are generated or read as a table by the program, and may be long."""

PLACE = "is in, is at, is stored, is listed"
USER = "a user, no user, all users, users with the ... role, the administrator"
REPORT = "reported, shows, is recorded, states"
WORDS = {
    r"told|tells": REPORT,
    r"nobody|somebody|someone|everybody|everyone|anybody|whoever|whomever": USER,
    r"who may": USER,
    r"lies|stands": PLACE,
    r"where there (?:is|are)|where it is none": "if there is, if it has no",
    r"foretells?|foretold|foretelling": "predict, prediction",
    r"in a row": "on the critical path, sequential, in succession",
    r"as soon as (?:some|any)body": "when a user",
    r"by hand": "manually, or name the command",
    r"at one go": "in one step",
    r"as ever": "as before, or nothing",
    r"any more": "no longer",
    r"alike": "identical, in the same way",
    r"goes on|let go|lets go": "resumes, continues, is released",
    r"mends?|mended|mending": "fix, suggested fix",
    r"bells?|doorbells?": "wake-up",
    r"keepers?|crews?": "agent, supervisor, service host",
    r"obituary|obituaries": "exit report",
    r"bury|buries|buried": "reap",
    r"hearts?": "heartbeat",
    r"greetings?": "handshake signatures",
    r"twins?": "ideal-network run",
    r"rungs?": "ladder steps",
    r"off the processor|without a core": "descheduled, blocked",
    r"super-segments?": "segmentation-offload correction",
    r"what decides": "the deciding metric",
    r"what runs": "running trials",
    r"quarter of an hour": "15 minutes",
    r"two or three times": "2 to 3 times",
}
"""Words that texts do not use -> what they use instead."""
_WORD = {re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE): word for pattern, word in WORDS.items()}
_CONTRACTS = re.compile("messages in a row")
"""Names of REST that keep their words."""
_OPENING = re.compile(r"(?:What|Whatever|Whether|Who|Whom|Whose|Where|Which|Why)\b")
_CODE = re.compile(r"``[^`]+``|`[^`]+`|\{[%{].*?[%}]\}|https?://\S+")

LONGEST_SUMMARY = 80
LONGEST_PAGE = 150
LONGEST_LINE = 100

Text = tuple[int, str]
"""Number of the first line, and the text."""


def checked(*patterns: str) -> list[Path]:
    return [path for path in tracked(*patterns) if not str(path).startswith(NOT_CHECKED)]


def docstrings(tree: ast.Module) -> Iterator[Text]:
    """Yield the docstrings of modules, classes, functions and of attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value.strip()


def texts_of_python(source: str) -> Iterator[Text]:
    """Yield comments, and strings of several words, docstrings among them."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) > 2:
            yield node.lineno, node.value


def texts_of(path: Path) -> Iterator[Text]:
    source = (ROOT / path).read_text()
    if path.suffix == ".py":
        yield from texts_of_python(source)
    else:
        yield from enumerate(source.splitlines(), start=1)


def wrong_words(texts: Iterator[Text]) -> Iterator[str]:
    """Yield line, word and replacement of each word of the list."""
    for first, text in texts:
        for number, line in enumerate(text.splitlines(), start=first):
            for pattern, instead in _WORD.items():
                for match in pattern.finditer(_CONTRACTS.sub(" ", _CODE.sub(" ", line))):
                    yield f"{number}: {match[0]!r} (write: {instead})"


def test_texts_use_the_words_of_the_field() -> None:
    files = checked("*.py", "*.md", "*.html", "*.txt", "*.yml", "*.service", "script/*")
    found = [f"{path}:{wrong}" for path in files for wrong in sorted(set(wrong_words(texts_of(path))))]
    assert not found, f"{len(found)} words:\n" + "\n".join(found)


def test_docstrings_open_with_a_verb_or_a_noun() -> None:
    found = [
        f"{path}:{line}: {text.splitlines()[0]}"
        for path in checked("*.py")
        for line, text in docstrings(ast.parse((ROOT / path).read_text()))
        if _OPENING.match(text)
    ]
    assert not found, "an imperative, or a noun phrase for a module or a class:\n" + "\n".join(found)


def test_docstrings_have_short_first_lines() -> None:
    """Attributes' docstrings are sentences of any length."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [
        f"{path}:{node.body[0].lineno}: {len(first)} characters: {first}"
        for path in tracked("*.py")
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, documented)
        and len(first := (ast.get_docstring(node) or "").partition("\n")[0]) > LONGEST_SUMMARY
    ]
    assert not found, f"at most {LONGEST_SUMMARY} characters; details in a second paragraph:\n" + "\n".join(found)


def test_documents_are_short_and_their_lines_too() -> None:
    found = []
    for path in checked("*.md"):
        if str(path) in GENERATED:
            continue
        lines = (ROOT / path).read_text().splitlines()
        if len(lines) > LONGEST_PAGE:
            found.append(f"{path}: {len(lines)} lines; at most {LONGEST_PAGE}")
        found += [
            f"{path}:{number}: {len(line)} columns; at most {LONGEST_LINE}"
            for number, line in enumerate(lines, start=1)
            if len(line) > LONGEST_LINE and not line.startswith(("|", "!", "    "))
        ]
    assert not found, "\n".join(found)


CODESPELL = Path(sys.executable).with_name("codespell")
NOT_MISSPELT = ("equil", "fom", "improbe", "keep-alives", "lightyear")
"""Names and words that codespell does not know."""
MISSPELT_IN_TESTS = ("alph", "alse", "experimnt", "feilds", "fro", "lenth", "nmae", "wher")
"""Wrong input of tests."""


def test_spelling() -> None:
    files = [str(path) for path in checked("*.py", "*.md", "*.html", "*.txt", "script/*")]
    options = ["--ignore-words-list", ",".join((*NOT_MISSPELT, *MISSPELT_IN_TESTS))]
    result = subprocess.run([CODESPELL, *options, *files], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("# nobody is told\n", ["'nobody'", "'told'"]),
        ('"""It lies\nin a row."""\n', ["'lies'", "'in a row'"]),
        ('raise ValueError(f"{name} stands there, by hand")\n', ["'stands'", "'by hand'"]),
        ("told = whoever  # `told` and shell-bells\n", []),
        ('kinds = ["keeper", "bell"]\n', []),
    ],
)
def test_words_are_found_in_texts_and_not_in_code(source: str, words: list[str]) -> None:
    found = [wrong.split(": ", 1)[1].partition(" (")[0] for wrong in wrong_words(texts_of_python(source))]
    assert sorted(found) == sorted(words)


@pytest.mark.parametrize(("text", "opens"), [("Whether it is", True), ("Whatever comes", True), ("Return what", False)])
def test_openings_of_docstrings_are_found(text: str, opens: bool) -> None:
    assert bool(_OPENING.match(text)) is opens
