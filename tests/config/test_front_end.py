"""Plotly and Tabler without unused parts."""

from __future__ import annotations

import re
from pathlib import Path

import plotly.graph_objects as go  # type: ignore[import-untyped]
import pytest
from django.conf import settings

from config.front_end import BUILT, CLASS_SOURCES, PLOTLY, TABLER, UNUSED_MODULES, used_rules, without_modules, words_of

BASE = Path(settings.BASE_DIR)


@pytest.mark.parametrize(
    ("css", "expected"),
    [
        (".a{b:c}.d{e:f}", ".a{b:c}"),
        (".a .d,.a:hover,p{b:c}", ".a:hover,p{b:c}"),
        (".a:not(.d,.e){b:c}.d:not(.a){b:c}", ".a:not(.d,.e){b:c}"),
        (":is(.a,.d) p,.d{b:c}", ":is(.a,.d) p{b:c}"),
        ('[x=".d,"].a{b:"}"}.d{b:"{"}', '[x=".d,"].a{b:"}"}'),
        (r".w-1\/2{b:c}.w-1\/3{b:c}", r".w-1\/2{b:c}"),
        ("@media (x){.a{b:c}.d{b:c}}@media (y){.d{b:c}}", "@media (x){.a{b:c}}"),
        ("@keyframes d{from{b:c}to{e:f}}.d{b:c}", "@keyframes d{from{b:c}to{e:f}}"),
        ('@charset "UTF-8";/*! it\'s .d{ */.a{b:url("data:image/svg+xml,{")}', None),
    ],
)
def test_it_keeps_the_rules_of_used_classes_alone(css: str, expected: str | None) -> None:
    assert used_rules(css, {"a", "w-1/2"}) == (css if expected is None else expected)


def test_it_keeps_the_style_sheet_as_it_is_if_all_its_classes_are_used() -> None:
    css = TABLER.read_text()
    assert used_rules(css, {re.sub(r"\\(.)", r"\1", name) for name in re.findall(r"\.((?:\\.|[\w-])+)", css)}) == css


def test_the_built_style_sheet_has_the_rules_of_today() -> None:
    """`script/bootstrap` builds it again after a change of a template."""
    words = words_of(path for folder, pattern in CLASS_SOURCES for path in (BASE / folder).rglob(pattern))
    assert (BUILT / "tabler.css").read_text() == used_rules(TABLER.read_text(), words)


def test_the_built_chart_library_is_smaller_and_has_its_licence() -> None:
    built = (BUILT / "plotly.js").read_text()
    assert len(built) < 1_100_000
    assert "* plotly.js (cartesian) v" in built[:100]
    assert "Licensed under the MIT license" in built[:300]


def test_the_chart_library_has_the_traces_and_components_of_all_figures() -> None:
    python = "".join(path.read_text() for path in (BASE / "dashboard" / "charts").glob("*.py"))
    traces = {name for name in re.findall(r'"type": "(\w+)"', python) if hasattr(go.Figure, f"add_{name}")}
    assert traces == {"scatter", "bar", "heatmap", "contour"}
    assert not {f"lib/{trace}.js" for trace in traces} & {*UNUSED_MODULES}
    assert not re.findall(r'"(?:rangeslider|rangeselector|sliders|updatemenus|images|calendar)"', python)


def test_it_refuses_a_bundle_of_another_form() -> None:
    with pytest.raises(ValueError, match=r"does not register lib/pie\.js"):
        without_modules(re.sub(r" *require_pie2\(\),?\n", "", PLOTLY.read_text()), ("lib/pie.js",))
