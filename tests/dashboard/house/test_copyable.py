"""Values on pages that a click copies with all their digits."""

from __future__ import annotations

from lxml import html

from analysis.numbers import Amount
from dashboard.templatetags.rankwire import copyable


def test_value_remembers_what_is_copied() -> None:
    data = html.fromstring(copyable(1_335_214.22, "B/s"))
    assert (data.tag, data.get("role"), data.get("value")) == ("data", "button", "1335214.22 B/s")
    assert data.text_content() == "1.335MB/s"
    assert html.fromstring(copyable(Amount.of(0.0004583127, "s"))).get("value") == "0.0004583127 s"


def test_words_and_missing_values_are_no_buttons() -> None:
    assert copyable("one host & more") == "one host &amp; more"
    assert copyable(None, "s") == "–"
    assert copyable(float("nan")) == "–"
