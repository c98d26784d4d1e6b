"""Every text that a user can read, with its place: script/ui-text [PATH ...].

Texts of templates, mails and JavaScript, strings of several words in Python, labels, and the descriptions
of the library. Placeholders are in braces. The list is generous: some strings are seen only by a log or another program.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from typing import Final

import yaml

from config.services.lease import ROOT
from tests.house.repository import tracked

SHOWN: Final = ("*.html", "templates/*.txt", "static/*.js", "experiments/library/*.yaml", "*.py")
NOT_SHOWN: Final = ("tests/", "benchmarks/", "clients/python/examples/", "migrations/")
LABELS: Final = ("label", "verbose_name", "help_text", "help", "title")
"""Keyword arguments whose strings are shown even if they are single words; in Python also choices of models."""
ATTRIBUTES: Final = ("title", "placeholder", "aria-label", "alt")
INLINE: Final = ("a", "abbr", "b", "br", "code", "em", "i", "kbd", "small", "span", "strong", "sub", "sup")
_WORDS: Final = re.compile(r"[A-Za-z]{2,}[,.:;)]? [({A-Za-z]")
_NOT_TEXT: Final = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|COPY|SET|LOCK|#include|\(\?)")
_LITERAL: Final = re.compile(r"""//[^\n]*|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`([^`]*)`""")

Text = tuple[int, str]
"""Line and text."""


class _Page(HTMLParser):
    """Collect the texts of blocks with their inline elements, and of attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[Text] = []
        self._block: list[str] = []
        self._line, self._is_code = 1, False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.end_block(tag)
        self._is_code = tag in ("script", "style")
        self.texts += [(self.getpos()[0], f"[{name}] {value}") for name, value in attrs if name in ATTRIBUTES]

    def handle_endtag(self, tag: str) -> None:
        self.end_block(tag)
        self._is_code = False

    def handle_data(self, data: str) -> None:
        self._line = self._line if "".join(self._block).strip() else self.getpos()[0]
        self._block += [] if self._is_code else [data]

    def end_block(self, tag: str = "") -> None:
        if tag not in INLINE:
            self.texts.append((self._line, "".join(self._block)))
            self._block = []


def of_template(source: str) -> list[Text]:
    page = _Page()
    without_tags = re.sub(r"\{[%#].*?[%#]\}", lambda tag: " " + "\n" * tag[0].count("\n"), source, flags=re.DOTALL)
    page.feed(re.sub(r"\{\{ *(.*?) *\}\}", lambda field: "{" + field[1].replace('"', "'") + "}", without_tags))
    page.end_block()
    return page.texts


def of_script(source: str) -> Iterator[Text]:
    for match in _LITERAL.finditer(source):
        text = next(filter(None, match.groups()), "")
        if _WORDS.search(text) or re.fullmatch("[A-Z][a-z]+", text):
            yield source[: match.start()].count("\n") + 1, text


def of_python(source: str) -> Iterator[Text]:
    skipped, labels = set[ast.AST](), set[ast.AST]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)  # a docstring
        elif isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
        elif isinstance(node, ast.keyword) and node.arg in LABELS:
            labels.add(node.value)
        elif isinstance(node, ast.ClassDef) and any("Choices" in ast.unparse(base) for base in node.bases):
            labels.update(ast.walk(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            is_text = _WORDS.search(node.value) and not _NOT_TEXT.match(node.value)
            if is_text or node in labels:
                yield node.lineno, node.value
        if isinstance(node, ast.JoinedStr) and _WORDS.search(text := ast.unparse(node)[2:-1]):
            yield node.lineno, text


def of_library(source: str) -> Iterable[Text]:
    return ((1, yaml.safe_load(source)[name]) for name in ("name", "description"))


READERS: Final = {".html": of_template, ".txt": of_template, ".js": of_script, ".py": of_python, ".yaml": of_library}


def main(paths: list[str]) -> None:
    for path in sorted(tracked(*(paths or SHOWN))):
        if path.suffix in READERS and not any(part in str(path) for part in NOT_SHOWN):
            for line, text in sorted(READERS[path.suffix]((ROOT / path).read_text())):
                if re.search("[A-Za-z]{2}", re.sub(r"\{.*?\}|\[[a-z-]+\]", "", text)):
                    print(f"{path}:{line}: {' '.join(text.split())}")


if __name__ == "__main__":
    main(sys.argv[1:])
