"""All marks, metrics and link settings of the pages have explanations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from lxml import html

from analysis.catalogue import METRICS
from analysis.conclusions.sentences.findings import FINDINGS
from dashboard.help.terms import words_of
from dashboard.labels import parameter_label
from dashboard.states import CHIPS
from experiments.models import Experiment
from experiments.specification.parameters import LINK_PARAMETERS
from tests.experiments import factories

KINDS = ("state.", "trust.", "")
NAMES = {metric.label for metric in METRICS.values()} | {parameter_label(path) for path in LINK_PARAMETERS}
"""Names of metrics and settings on pages."""


def unexplained(document: html.HtmlElement) -> set[str]:
    """Return words of marks and names that show nothing on hover and focus."""
    marks = [
        element
        for element in document.xpath("//main//*[contains(@class, 'chip')]")
        if "bare" not in element.get("class")
    ]
    named = document.xpath("//main//th | //main//dt | //main//h3")
    results = [*marks, *(row for row in named if row.text_content().strip() in NAMES)]
    explains = "[@data-explains or @data-explained-by]"
    is_explained = f"ancestor-or-self::*{explains} | .//*{explains}"
    return {" ".join(row.text_content().split()) for row in results if not row.xpath(is_explained)}


def test_every_chip_is_defined() -> None:
    assert [state for state in CHIPS if not any(words_of(f"{kind}{state}") for kind in KINDS)] == []


def test_every_rule_of_findings_has_a_name_and_a_definition() -> None:
    called = {name.partition(",")[0] for name in FINDINGS}
    assert [name for name in called if not words_of(f"finding.{name}")] == []


def test_no_page_leaves_a_mark_or_a_name_unexplained(
    page: Client, submit: Callable[..., Experiment], run: Callable[..., None]
) -> None:
    experiment = submit(repetitions=3)
    run(most=8)
    connection.check_constraints()  # as a commit does: what histories are made of is written
    trial = experiment.trials.filter(state="finished").latest("pk")
    point = trial.configuration.hash
    addresses = [
        *("/", "/experiments/", "/trials/", "/studies/", "/history/", "/clusters/", "/clusters/testbed/", "/quotas/"),
        *(
            "/explore/?workload=water",
            "/workloads/",
            "/workloads/water/",
            "/networks/",
            "/network/",
            experiment.get_absolute_url(),
        ),
        f"/experiments/{experiment.slug}/diagnosis/",
        *(trial.get_absolute_url(), f"/history/{point}/testbed/?metric=elapsed_s", f"/network/{experiment.slug}/"),
        factories.prediction(experiment).get_absolute_url(),
        f"/compare/?of=e:{experiment.slug},e:guster-2007-water",
        *(f"/experiments/{slug}/" for slug in ("guster-2007-water", "monarc-1999-readers", "eadline-2006-hpl")),
    ]
    unexplained_by_page = {}
    for address in addresses:
        answer = page.get(address)
        assert answer.status_code == 200, address
        words = unexplained(html.fromstring(f"<main>{answer.content.decode()}</main>"))
        if words:
            unexplained_by_page[address] = words
    assert not unexplained_by_page, "\n".join(
        f"{address}: {sorted(words)}" for address, words in unexplained_by_page.items()
    )


@pytest.mark.parametrize("source", ["<dt>Elapsed time</dt>", '<span class="chip ok">Firm</span>'])
def test_what_it_looks_for_can_be_found(source: str) -> None:
    assert unexplained(html.fromstring(f"<div><main>{source}</main></div>"))
