"""Numbers for readers are written by ``analysis.numbers`` alone."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

from config.services.lease import ROOT

ROOMS = ("analysis", "experiments", "workers", "dashboard")
FORMATTER = "analysis/numbers.py"
ALLOWED = {
    "analysis/command_line/commands.py": "the time column of a series, for programs",
    "analysis/traffic/legacy.py": "figures as the script of 2011 printed them",
    "dashboard/charts/marks.py": "places in a drawing",
    "dashboard/panels/compare/table.py": "places in a drawing",
    "experiments/cluster_kinds/facts.py": "facts as people write them, without loss",
    "experiments/models/measurement.py": "names of rows in the administration",
    "experiments/models/summary.py": "names of rows in the administration",
    "experiments/programs/": "programs that run alone on the hosts, and print for their parsers",
    "experiments/common/quantities.py": "settings as people write them, without loss",
    "experiments/specification/": "settings as people write them, without loss",
    "experiments/workloads/": "arguments of programs, and limits as people write them",
    "workers/hosts/counters/": "runs with every agent, on the standard library alone",
    "workers/testbed/emulation.py": "arguments of tc and of relays",
}
"""Modules, or folders, that write numbers themselves, and why."""

_SPEC = re.compile(r"[<>=^]?[-+ ]?#?0?\d*[,_]?(?:\.\d*)?[eEfFgGn%]?")
_PRINTF = re.compile(r"%[-+ #0]*\d*\.\d+[efgEFG]")
_D3 = re.compile(r":[,.$]*\d*~[a-z]")
_TEMPLATE_FILTERS = re.compile(r"\|\s*(floatformat|intcomma|stringformat|filesizeformat)\b")
PACKETS = "templates/trial/_packet_rows.html"
"""Seconds since the first packet stand below each other to the microsecond, as in Wireshark's list."""


@functools.cache
def _sources() -> dict[str, tuple[ast.AST, ...]]:
    """Return the nodes of each module that can contain a string."""
    files = (file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py")))
    return {
        str(file.relative_to(ROOT)): tuple(
            node
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.FormattedValue | ast.Constant)
        )
        for file in files
    }


def _formats(node: ast.AST) -> bool:
    """Return whether a replacement field has digits or a thousands separator."""
    if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
        spec = "".join(part.value if isinstance(part, ast.Constant) else "1" for part in node.format_spec.values)
        return bool(_SPEC.fullmatch(spec)) and bool(re.search(r"[,_.eEfFgGn%]", spec))
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_PRINTF.search(node.value))


def _hovers(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_D3.search(node.value))


def _makes_plurals(node: ast.AST) -> bool:
    """Return True for a conditional "s" at the end of a word."""
    parts: list[ast.AST] = []
    if isinstance(node, ast.FormattedValue):
        inner = node.value
        if isinstance(inner, ast.IfExp):
            parts = [inner.body, inner.orelse]
        elif isinstance(inner, ast.BinOp):
            parts = [inner.left, inner.right]
        elif isinstance(inner, ast.Subscript):
            parts = [inner.value]
    return any(isinstance(part, ast.Constant) and part.value in ("s", "es") for part in parts)


def _message(advice: str, lines_of: dict[str, list[int]]) -> str:
    return "\n".join(f"{name}, line {', '.join(map(str, lines))}: {advice}" for name, lines in lines_of.items())


def _lines(matches: object, allowed: tuple[str, ...] = ()) -> dict[str, list[int]]:
    lines_of: dict[str, list[int]] = {}
    for name, nodes in _sources().items():
        if name == FORMATTER or name.startswith(allowed):
            continue
        lines = sorted({node.lineno for node in nodes if matches(node)})  # type: ignore[operator, attr-defined]
        if lines:
            lines_of[name] = lines
    return lines_of


def test_it_rounds_numbers_for_readers_in_one_module() -> None:
    lines = _lines(_formats, tuple(ALLOWED))
    assert not lines, _message("call analysis.numbers", lines)


def test_it_needs_every_exception() -> None:
    writing = _lines(_formats)
    assert not [name for name in ALLOWED if not any(module.startswith(name) for module in writing)]


def test_it_gives_hover_texts_the_digits_of_the_rule() -> None:
    lines = _lines(_hovers)
    assert not lines, _message("call dashboard.charts.parts.hover", lines)


def test_it_makes_plurals_in_one_module() -> None:
    lines = _lines(_makes_plurals)
    assert not lines, _message("call analysis.numbers.plural", lines)


def _words(template: Path) -> str:
    """Return the visible text of a template, without tags and logic."""
    return re.sub(r"<[^<>]*>", "", re.sub(r"\{[%#].*?[%#]\}", "", template.read_text(), flags=re.DOTALL))


def test_it_rounds_no_numbers_in_templates() -> None:
    templates = {str(file.relative_to(ROOT)): file for file in (ROOT / "templates").rglob("*.html")}
    rounding = [name for name, file in templates.items() if _TEMPLATE_FILTERS.search(_words(file))]
    assert rounding == [PACKETS], "use the filters and tags of dashboard.templatetags.rankwire"
