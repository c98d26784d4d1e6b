"""Terms in pages: all that templates name, states and trust are defined."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.template import Context, Template
from django.test import Client
from django.urls import reverse
from lxml import html

from analysis.catalogue import METRICS
from analysis.numbers import unbroken
from analysis.trust_level import TrustLevel
from dashboard.help.guides import guides
from dashboard.help.terms import term
from dashboard.templatetags.rankwire import IN_SENTENCES
from experiments.models import State, Status
from experiments.specification.parameters import LINK_PARAMETERS

_NAMED = re.compile(r'{% explain (?:"([^"]+)"|\S+)(?: "([^"]+)")? %}')


def element_of(source: str, **context: object) -> html.HtmlElement:
    return html.fromstring(Template("{% load rankwire %}" + source).render(Context(context)))


def test_every_term_that_a_template_names_is_defined() -> None:
    named = {
        name or words
        for path in (settings.BASE_DIR / "templates").rglob("*.html")
        for words, name in _NAMED.findall(path.read_text(encoding="utf-8"))
        if words or name
    }
    assert len(named) >= 35
    assert [name for name in named if term(name) is None] == []


@pytest.mark.parametrize(
    "name", [*(f"state.{state}" for state in (*State, *Status)), *(f"trust.{level}" for level in TrustLevel)]
)
def test_every_state_and_trust_is_defined(name: str) -> None:
    assert term(name) is not None


def test_every_setting_of_a_link_is_defined() -> None:
    assert [path for path in LINK_PARAMETERS if term(path) is None] == []


def test_a_term_shows_its_meaning_and_leads_to_its_definition(page: Client) -> None:
    link = element_of('{% explain "Serial fraction" %}')
    assert link.get("data-explains", "").startswith("Experimentally determined (Karp and Flatt 1990)")
    address, _, anchor = link.get("href", "").partition("#")
    assert address == reverse("guide", args=["terms"])
    assert anchor in html.fromstring(page.get(address).content.decode()).xpath("//tr/@id")


def test_a_metric_leads_to_the_catalogue() -> None:
    link = element_of('{% explain "CPU" "cpu_s" %}')
    assert link.text == "CPU"
    assert link.get("data-explains") == METRICS["cpu_s"].definition
    assert link.get("href") == "/help/metrics/#cpu_s"


def test_a_definition_names_other_metrics_by_their_labels() -> None:
    meanings = {name: term(name).meaning for name in METRICS}  # type: ignore[union-attr]
    named = {name: [word for word in re.findall(r"\w+", text) if word in METRICS] for name, text in meanings.items()}
    assert {name for name, ids in named.items() if any("_" in word for word in ids)} == set()
    assert "“Load balance” x “Communication efficiency”" in meanings["mpi_parallel_efficiency"]


def test_a_figure_of_a_workload_leads_to_the_workload(page: Client) -> None:
    result = term("pingpong.latency_s")
    assert result is not None
    explained = html.fromstring(page.get(result.address).content.decode()).xpath("//@data-explains")
    assert " ".join(result.meaning.split()) in [" ".join(meaning.split()) for meaning in explained]


def test_the_terms_are_a_guide_of_their_own() -> None:
    assert guides()["terms"].page.title == "Terms"


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        (
            "2 hosts are enough: 1.2\u202fs without drift (96.5\u202f% CI 1.1 to 1.3\u202fs), not 1.3\u202fs without drift.",
            ["without-drift", "confidence-interval"],
        ),
        ("At 4 hosts, 0.5\u202fs more in MPI excluding waits for descheduled ranks.", ["without-waiting-for-core"]),
        (
            "At 4 hosts, against the ideal from 1 host, 0.5\u202fs more waiting for a CPU core to compute",
            ["ideal-time", "waiting-for-core"],
        ),
        ("Ideal from 1 host", ["ideal-time"]),
        (
            "Set TaskPlugin; PMIx, PALS and netem over a jump host.",
            ["task-plugin", "pmi", "pals", "netem", "jump-host"],
        ),
        ("Ranks were <descheduled> for 20 % of the time on an ideal network.", ["descheduled"]),
        ("2 hosts & 4 hosts are equal.", []),
    ],
)
def test_terms_of_a_sentence_have_their_meaning_where_they_are_first_used(sentence: str, names: list[str]) -> None:
    element = element_of("<p>{% explain_terms sentence %}</p>", sentence=sentence)
    assert element.text_content() == unbroken(sentence)
    meanings = [unbroken(meaning.meaning) if (meaning := term(name)) else None for name in names]
    assert [link.get("data-explains") for link in element] == meanings
    assert [link.get("href", "").partition("#")[2] for link in element] == names


def test_every_term_of_sentences_is_defined() -> None:
    assert [name for name in IN_SENTENCES if term(name) is None] == []
