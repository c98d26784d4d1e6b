"""Markdown as a page: headings and rows of tables with anchors, and the text of each of them for the search."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

Resolve = Callable[[str], str | None]
"""Gives the address for what a document links to; None for what has no page."""

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True, slots=True)
class Section:
    """What stands below one heading, or in one row of a table that defines an identifier (``level`` 0)."""

    level: int
    title: str
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """A document for readers: ``html`` lacks the first heading, which is the title."""

    title: str
    html: SafeString
    sections: tuple[Section, ...]


def read(text: str, resolve: Resolve) -> Page:
    """Return ``text`` as a page. HTML in it is shown as text; links and pictures go where ``resolve`` says."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    tokens = parser.parse(text)
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
    """Give headings and defining rows their anchors, and return what stands below each."""
    found: list[tuple[int, str, str, list[str]]] = []
    taken: set[str] = set()
    heading = 0
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            title = plain(tokens[number + 1])
            anchor = _unlike(slug(title), taken)
            token.attrSet("id", anchor)
            heading = len(found)
            found.append((int(token.tag[1:]), title, anchor, []))
        elif token.type == "table_open":
            token.meta["label"] = f"Table {sum(each.type == 'table_open' for each in tokens[: number + 1])}"
        elif token.type == "tr_open" and (identifier := _defined(tokens, number)) and identifier not in taken:
            taken.add(identifier)
            token.attrSet("id", identifier)
            label = plain(tokens[number + 5])
            found.append((0, f"{label} ({identifier})" if len(label) < 80 else identifier, identifier, []))
        elif token.type == "tr_close" and found and not found[-1][0]:
            found.append(_continued(found[heading]))
        elif found and token.type in {"inline", "fence", "code_block"} and tokens[number - 1].type != "heading_open":
            found[-1][3].append(plain(token) if token.type == "inline" else token.content)
    return _merged(found)


def _continued(heading: tuple[int, str, str, list[str]]) -> tuple[int, str, str, list[str]]:
    return heading[0], heading[1], heading[2], []


def _merged(found: Sequence[tuple[int, str, str, list[str]]]) -> list[Section]:
    """One section for each anchor, in the order in which they begin."""
    texts: dict[str, list[str]] = {}
    kept: dict[str, tuple[int, str]] = {}
    for level, title, anchor, parts in found:
        kept.setdefault(anchor, (level, title))
        texts.setdefault(anchor, []).extend(parts)
    return [Section(level, title, anchor, " ".join(texts[anchor])) for anchor, (level, title) in kept.items()]


def _defined(tokens: Sequence[Token], row: int) -> str:
    """The identifier that a row of three columns or more defines: its first cell is nothing but code."""
    if tokens[row + 1].type != "td_open" or tokens[row + 4].type != "td_open":
        return ""
    cell = tokens[row + 2].children or []
    is_code = len(cell) == 1 and cell[0].type == "code_inline" and _IDENTIFIER.fullmatch(cell[0].content)
    return cell[0].content if is_code else ""


def _unlike(anchor: str, taken: set[str]) -> str:
    """The anchor, numbered where an earlier heading has it, as the site that hosts the repository does."""
    numbered, number = anchor, 0
    while numbered in taken:
        number += 1
        numbered = f"{anchor}-{number}"
    taken.add(numbered)
    return numbered


def slug(title: str) -> str:
    """The anchor of a heading, as the site that hosts the repository makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def plain(token: Token) -> str:
    """The text of an inline token without its marks."""
    return "".join(" " if each.type.endswith("break") else each.content for each in token.children or [])


def _linked(children: Sequence[Token], resolve: Resolve) -> list[Token]:
    """Links and pictures with addresses of the application; the words alone where there is no page behind a link."""
    kept: list[Token] = []
    without_page = False
    for token in children:
        if token.type == "link_open":
            address = resolve(str(token.attrs["href"]))
            without_page = address is None
            if address is None:
                continue
            token.attrSet("href", address)
        elif token.type == "link_close" and without_page:
            without_page = False
            continue
        elif token.type == "image":
            picture = resolve(str(token.attrs["src"]))
            if picture is None:
                kept.append(Token("text", "", 0, content=token.content))
                continue
            token.attrSet("src", picture)
        kept.append(token)
    return kept


def _table_open(_: RendererHTML, tokens: Sequence[Token], number: int, *rest: Any) -> str:
    label = escape(tokens[number].meta["label"])
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table class="table">'


def _table_close(*_: Any) -> str:
    return "</table></div>"
