"""Text of a report: CommonMark with tables and pinned parts.

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

from experiments.common import budget
from experiments.errors import FieldError, InvalidSpec

FIELD: Final = "text"
MOST_PARTS: Final = 60
TABLES: Final = ("configurations", "scaling", "efficiency", "trials")
FROZEN: Final = "frozen"
_KINDS: Final = {
    "answer": "{{ answer EXPERIMENT }}",
    "chart": "{{ chart EXPERIMENT CHART }}",
    "table": f"{{{{ table EXPERIMENT {'|'.join(TABLES)} }}}}",
    "compare": "{{ compare EXPERIMENT EXPERIMENT ... }} or {{ compare QUERY CHART }}",
    "explore": "{{ explore QUERY CHART }}",
    "history": "{{ history QUERY CHART }}",
}
_LINE: Final = re.compile(r"\{\{(.*)\}\}\s*$")
_INLINE: Final = re.compile(rf"\{{\{{\s*({'|'.join(_KINDS)})\b")
_FEWEST_COMPARED, _MOST_COMPARED = 2, 8


@dataclass(frozen=True, slots=True)
class Part:
    """A pinned part; ``what`` names a chart or table, ``line`` counts from 1.

    ``query`` is the query string of a page that draws the chart.
    """

    kind: str
    slugs: tuple[str, ...]
    what: str
    frozen: bool
    line: int
    query: str = ""

    @property
    def key(self) -> str:
        """Identifier of the contents, frozen or not."""
        return " ".join(filter(None, (self.kind, *self.slugs, self.query, self.what)))

    def __str__(self) -> str:
        return f"{{{{ {self.key}{f' {FROZEN}' if self.frozen else ''} }}}}"


Block = str | Part
"""A piece of a report: safe HTML or a part."""


def blocks(text: str) -> list[Block]:
    """Return the pieces of a text. Raise InvalidSpec with the line of each error."""
    parser = _parser()
    tokens = parser.parse(text)
    errors: list[FieldError] = []
    parts = dict(_parts(tokens, errors))
    errors += _forbidden(tokens)
    if len(parts) > MOST_PARTS:
        errors.append(FieldError(FIELD, f"has {len(parts)} parts; at most {MOST_PARTS} are shown"))
    if errors:
        raise InvalidSpec(sorted(errors, key=lambda error: error.line or 0))
    pieces: list[Block] = []
    start = 0
    for index in (*parts, len(tokens)):
        if html := parser.renderer.render(_styled(tokens[start:index]), parser.options, {}):
            pieces.append(html)
        if index in parts:
            pieces.append(parts[index])
        start = index + 1
    return pieces


def parts_of(text: str) -> list[Part]:
    """Return the parts of a text in order. Raise InvalidSpec."""
    return [block for block in blocks(text) if isinstance(block, Part)]


def _parser() -> MarkdownIt:
    # Without HTML only links are active, and markdown-it refuses URLs with scripts.
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.block.ruler.before("table", "budget", _count_time)
    parser.inline.ruler.before("text", "budget", _count_time)
    parser.block.ruler.before("fence", "part", _part_rule, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    return parser


def _count_time(*_: Any) -> bool:
    """Count as processor time of the request, as a rule that matches nothing."""
    budget.check()
    return False


def _part_rule(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """Parse a line in double braces, as a rule of markdown-it."""
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
    for index, token in enumerate(tokens):
        if token.type != "part":
            continue
        line = _line(token)
        try:
            if token.level:
                raise ValueError("a part needs a line of its own, outside lists and quotes")
            yield index, _part(token.content.split(), line)
        except ValueError as error:
            errors.append(FieldError(FIELD, str(error), line))


def _part(words: list[str], line: int) -> Part:
    frozen = len(words) > 1 and words[-1] == FROZEN
    kind, *rest = words[: len(words) - frozen] or [""]
    if kind not in _KINDS:
        raise ValueError(f"there is no part {kind!r}; known: {', '.join(_KINDS)}")
    usage = f"write {_KINDS[kind]}, with {FROZEN} at the end to keep the current data"
    if kind in ("compare", "explore", "history") and len(rest) == 2 and "=" in rest[0]:
        return Part(kind, (), rest[1], frozen, line, rest[0])
    if kind == "compare":
        if not _FEWEST_COMPARED <= len(rest) <= _MOST_COMPARED:
            raise ValueError(f"{_FEWEST_COMPARED} to {_MOST_COMPARED} experiments can be compared; {usage}")
        if len(set(rest)) < len(rest):
            raise ValueError("the comparison lists an experiment twice")
        return Part(kind, tuple(rest), "", frozen, line)
    if kind == "table" and len(rest) == 1:
        rest.append(TABLES[0])
    if kind in ("explore", "history") or len(rest) != (1 if kind == "answer" else 2):
        raise ValueError(usage)
    what = rest[1] if len(rest) > 1 else ""
    if kind == "table" and what not in TABLES:
        raise ValueError(f"there is no table {what!r}; known: {', '.join(TABLES)}")
    return Part(kind, (rest[0],), what, frozen, line)


def _forbidden(tokens: Sequence[Token]) -> Iterator[FieldError]:
    """Yield errors for images, which need other sites, and for parts within a line."""
    for token in tokens:
        # Also in the source: escaped braces are text.
        has_part = bool(token.children) and _INLINE.search(token.content) is not None
        for child in token.children or ():
            if child.type == "image":
                yield FieldError(FIELD, "images are not allowed: pin a chart, or link to the picture", _line(token))
            if child.type == "text" and has_part and _INLINE.search(child.content):
                yield FieldError(FIELD, "a part needs a line of its own", _line(token))


def _styled(tokens: Sequence[Token]) -> list[Token]:
    """Add classes of the style sheet, and `rel` of links to hide the referrer."""
    for token in tokens:
        for element in (token, *(token.children or ())):
            if element.type == "table_open":
                element.attrJoin("class", "table")
            if element.type in ("th_open", "td_open") and element.attrs.pop("style", "") == "text-align:right":
                element.attrJoin("class", "num")
            if element.type == "link_open":
                element.attrSet("rel", "noopener noreferrer nofollow")
    return list(tokens)


def _line(token: Token) -> int:
    return (token.map or [0])[0] + 1


_SPECIAL: Final = re.compile(r"([\\`*_\[\]{<>&|])")
_AT_BEGINNING: Final = re.compile(r"^([#+=~-]|\d+(?=[.)]))")


def plain(text: Any) -> str:
    """Escape text for one line of Markdown."""
    words = _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))
    start = _AT_BEGINNING.match(words)
    if start is None:
        return words
    mark = start[1]
    return f"{mark}\\{words[len(mark) :]}" if mark.isdigit() else f"\\{words}"


def one_ending(text: str) -> str:
    """Convert line ends to those of Unix."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
