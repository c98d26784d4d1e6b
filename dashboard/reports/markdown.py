"""A report's text: CommonMark with tables, without HTML and images, and with pinned parts on lines of their own. Pure.

{{ KIND EXPERIMENT... WHAT [frozen] }}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from experiments.errors import FieldError, InvalidSpec

FIELD: Final = "text"
MOST_PARTS: Final = 60
TABLES: Final = ("configurations", "scaling", "efficiency", "trials")
FROZEN: Final = "frozen"
_KINDS: Final = {
    "answer": "{{ answer EXPERIMENT }}",
    "chart": "{{ chart EXPERIMENT CHART }}",
    "table": f"{{{{ table EXPERIMENT {'|'.join(TABLES)} }}}}",
    "compare": "{{ compare EXPERIMENT EXPERIMENT ... }}",
}
_LINE: Final = re.compile(r"\{\{(.*)\}\}\s*$")
_INLINE: Final = re.compile(rf"\{{\{{\s*({'|'.join(_KINDS)})\b")
_FEWEST_COMPARED, _MOST_COMPARED = 2, 8


@dataclass(frozen=True, slots=True)
class Part:
    """Something pinned. ``what`` names the chart or the table; ``line`` is where it stands in the text, from 1."""

    kind: str
    slugs: tuple[str, ...]
    what: str
    frozen: bool
    line: int

    @property
    def key(self) -> str:
        """What it is, frozen or not."""
        return " ".join(filter(None, (self.kind, *self.slugs, self.what)))

    def __str__(self) -> str:
        return f"{{{{ {self.key}{f' {FROZEN}' if self.frozen else ''} }}}}"


Block = str | Part
"""A piece of a report in its order: safe HTML, or a part."""


def blocks(text: str) -> list[Block]:
    """Return the pieces of a text. Raise InvalidSpec with every error at its line."""
    parser = _parser()
    tokens = parser.parse(text)
    errors: list[FieldError] = []
    parts = dict(_parts(tokens, errors))
    errors += _unwanted(tokens)
    if len(parts) > MOST_PARTS:
        errors.append(FieldError(FIELD, f"has {len(parts)} parts; at most {MOST_PARTS} are drawn"))
    if errors:
        raise InvalidSpec(sorted(errors, key=lambda error: error.line or 0))
    pieces: list[Block] = []
    since = 0
    for place in (*parts, len(tokens)):
        if html := parser.renderer.render(_dressed(tokens[since:place]), parser.options, {}):
            pieces.append(html)
        if place in parts:
            pieces.append(parts[place])
        since = place + 1
    return pieces


def parts_of(text: str) -> list[Part]:
    """Return the parts of a text in their order. Raise InvalidSpec."""
    return [block for block in blocks(text) if isinstance(block, Part)]


def _parser() -> MarkdownIt:
    # Without HTML, links are all that could act; markdown-it refuses the addresses that run something.
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.block.ruler.before("fence", "part", _part_rule, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    return parser


def _part_rule(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """The rule of markdown-it for a line that begins and ends with double braces."""
    if state.is_code_block(line):
        return False
    text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
    match = _LINE.fullmatch(text)
    if match is None:
        return False
    if not silent:
        token = state.push("part", "", 0)
        token.content, token.map = match[1], [line, line + 1]
        state.line = line + 1
    return True


def _parts(tokens: Sequence[Token], errors: list[FieldError]) -> Iterator[tuple[int, Part]]:
    for place, token in enumerate(tokens):
        if token.type != "part":
            continue
        line = _line(token)
        try:
            if token.level:
                raise ValueError("a part stands on a line of its own, outside of lists and quotes")
            yield place, _part(token.content.split(), line)
        except ValueError as error:
            errors.append(FieldError(FIELD, str(error), line))


def _part(words: list[str], line: int) -> Part:
    frozen = len(words) > 1 and words[-1] == FROZEN
    kind, *rest = words[: len(words) - frozen] or [""]
    if kind not in _KINDS:
        raise ValueError(f"there is no part {kind!r}; known: {', '.join(_KINDS)}")
    told = f"write {_KINDS[kind]}, with {FROZEN} at its end to keep the data as they are"
    if kind == "compare":
        if not _FEWEST_COMPARED <= len(rest) <= _MOST_COMPARED:
            raise ValueError(f"{_FEWEST_COMPARED} to {_MOST_COMPARED} experiments are compared; {told}")
        if len(set(rest)) < len(rest):
            raise ValueError("an experiment stands twice in the comparison")
        return Part(kind, tuple(rest), "", frozen, line)
    if kind == "table" and len(rest) == 1:
        rest.append(TABLES[0])
    if len(rest) != (1 if kind == "answer" else 2):
        raise ValueError(told)
    what = rest[1] if len(rest) > 1 else ""
    if kind == "table" and what not in TABLES:
        raise ValueError(f"there is no table {what!r}; known: {', '.join(TABLES)}")
    return Part(kind, (rest[0],), what, frozen, line)


def _unwanted(tokens: Sequence[Token]) -> Iterator[FieldError]:
    """Images, which would have to come from elsewhere, and parts within a line."""
    for token in tokens:
        for child in token.children or ():
            if child.type == "image":
                yield FieldError(FIELD, "images are not shown: pin a chart, or link to the picture", _line(token))
            # In the source too, where braces after a backslash are meant as they are.
            if child.type == "text" and _INLINE.search(child.content) and _INLINE.search(token.content):
                yield FieldError(FIELD, "a part stands on a line of its own", _line(token))


def _dressed(tokens: Sequence[Token]) -> list[Token]:
    """Tokens with the classes of the style sheet; links tell nobody where they were followed from."""
    for token in tokens:
        for each in (token, *(token.children or ())):
            if each.type == "table_open":
                each.attrJoin("class", "table")
            if each.type in ("th_open", "td_open") and each.attrs.pop("style", "") == "text-align:right":
                each.attrJoin("class", "num")
            if each.type == "link_open":
                each.attrSet("rel", "noopener noreferrer nofollow")
    return list(tokens)


def _line(token: Token) -> int:
    return (token.map or [0])[0] + 1


_SPECIAL: Final = re.compile(r"([\\`*_\[\]{<>&|])")
_AT_BEGINNING: Final = re.compile(r"^([#+=~-]|\d+(?=[.)]))")


def plain(text: Any) -> str:
    """Text as it is, on one line, whatever of it Markdown would take for marks."""
    words = _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))
    begun = _AT_BEGINNING.match(words)
    if begun is None:
        return words
    mark = begun[1]
    return f"{mark}\\{words[len(mark) :]}" if mark.isdigit() else f"\\{words}"


def one_ending(text: str) -> str:
    """Text with the line ends of Unix, whatever a browser sent."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
