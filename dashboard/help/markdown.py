"""Markdown as a page, with anchors of headings and table rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from analysis.numbers import unbroken

Resolve = Callable[[str], str | None]
"""Returns the URL of a link target, or None if it has no page."""

_COMMENT: Final = re.compile(r"^<!--.*-->\n", re.MULTILINE)
_TITLES: Final = ("heading_open", "th_open", "td_open")
"""Tokens before text that the page joins in its own way, or that is a title."""
_MEANINGS: Final = ("definition", "meaning")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True, slots=True)
class Section:
    """Text below a heading, or of a defining table row (``level`` 0)."""

    level: int
    title: str
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """A rendered document; ``html`` has no first heading, which is the title."""

    title: str
    html: SafeString
    sections: tuple[Section, ...]


def read(text: str, resolve: Resolve) -> Page:
    """Render ``text``. HTML is escaped; ``resolve`` maps links and pictures.

    Lines that are one comment are removed.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    tokens = parser.parse(_COMMENT.sub("", text))
    sections = _anchor(tokens)
    for token in tokens:
        if token.children:
            token.children = _linked(token.children, resolve)
    title = ""
    if tokens and tokens[0].type == "heading_open" and tokens[0].tag == "h1":
        title, tokens = sections[0].title, tokens[3:]
    html = parser.renderer.render(tokens, parser.options, {})
    return Page(title, mark_safe(html), tuple(sections))  # noqa: S308 (the parser escapes all text and refuses HTML)


def _anchor(tokens: list[Token]) -> list[Section]:
    """Add anchors to headings and defining rows; return the section of each."""
    sections: dict[str, tuple[int, str, list[str]]] = {}
    heading = here = ""
    tables = column = 0
    header: list[str] = []
    cells: list[str] = []
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            title = plain(tokens[number + 1])
            heading = here = _unique(slug(title), sections)
            token.attrSet("id", here)
            sections[here] = (int(token.tag[1:]), title, [])
        elif token.type == "table_open":
            tables += 1
            token.meta["label"] = f"Table {tables}"
            header = []
        elif token.type == "tr_open" and (identifier := _defined(tokens, number)) and identifier not in sections:
            here = identifier
            token.attrSet("id", identifier)
            label = plain(tokens[number + 5])
            names = header[1] != "default" and len(label) < 80
            sections[here] = (0, f"{label} ({identifier})" if names else identifier, [])
        elif token.type == "tr_close":
            if here and cells:
                sections[here][2].append(_row(cells, header, sections[here][1] if here != heading else ""))
            here, cells = heading, []
        elif token.type == "th_open":
            header.append(plain(tokens[number + 1]))
        elif token.type == "td_open":
            column = 0 if tokens[number - 1].type == "tr_open" else column + 1
            token.attrSet("data-name", header[column])
            cells.append(plain(tokens[number + 1]))
        elif here and token.type in {"inline", "fence", "code_block"} and tokens[number - 1].type not in _TITLES:
            sections[here][2].append(plain(token) if token.type == "inline" else token.content)
    return [Section(level, title, anchor, " ".join(texts)) for anchor, (level, title, texts) in sections.items()]


def _row(cells: Sequence[str], header: Sequence[str], title: str) -> str:
    """Return a row as text: "name: cell, cell."; of a defining row its meaning."""
    if not title:
        rest = ", ".join(cell.rstrip(".") for cell in cells[1:] if cell)
        return f"{cells[0]}: {rest}." if cells[0] and rest else f"{cells[0]}{rest}."
    count = 1 if title == cells[0] else 2
    named = [(name, cell) for name, cell in zip(header[count:], cells[count:], strict=True) if cell]
    meaning = max(named, key=lambda pair: (pair[0] in _MEANINGS, len(pair[1])), default=("", ""))[1]
    rest = ", ".join(f"{name}: {cell}" for name, cell in named if cell != meaning)
    return f"{' '.join(cells[:count])} {meaning}{f' ({rest})' if rest else ''}"


def _defined(tokens: Sequence[Token], row: int) -> str:
    """Return the identifier in the first cell of a row with three or more columns."""
    if tokens[row + 1].type != "td_open" or tokens[row + 4].type != "td_open":
        return ""
    cell = tokens[row + 2].children or []
    is_code = len(cell) == 1 and cell[0].type == "code_inline" and _IDENTIFIER.fullmatch(cell[0].content)
    return cell[0].content if is_code else ""


def _unique(anchor: str, taken: Container[str]) -> str:
    """Return the anchor, numbered like GitHub's if an earlier heading has it."""
    return next(name for number in count() if (name := f"{anchor}-{number}" if number else anchor) not in taken)


def slug(title: str) -> str:
    """Return the anchor of a heading, as on GitHub."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def plain(token: Token) -> str:
    """Return the text of an inline token."""
    return "".join(" " if child.type.endswith("break") else child.content for child in token.children or [])


def _linked(children: Sequence[Token], resolve: Resolve) -> list[Token]:
    """Map links and pictures; keep the text of a link without a page."""
    tokens: list[Token] = []
    closing = True
    for token in children:
        if token.type == "text":
            token.content = unbroken(token.content)
        name = {"link_open": "href", "image": "src"}.get(token.type)
        address = resolve(str(token.attrs[name])) if name else None
        if name and address is not None:
            token.attrSet(name, address)
        elif token.type == "image":
            token = Token("text", "", 0, content=token.content)
        if token.type == "link_open":
            closing = address is not None
        if closing or token.type not in ("link_open", "link_close"):
            tokens.append(token)
    return tokens


def _table_open(_: RendererHTML, tokens: Sequence[Token], number: int, *rest: Any) -> str:
    label = escape(tokens[number].meta["label"])
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table class="table">'


def _table_close(*_: Any) -> str:
    return "</table></div>"
