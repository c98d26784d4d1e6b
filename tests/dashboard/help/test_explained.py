"""All marks, metrics and link settings of the pages have explanations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from django.contrib.auth.models import User
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
IDS = {*METRICS, *LINK_PARAMETERS}


def unexplained(document: html.HtmlElement) -> set[str]:
    """Return words of marks and names that show nothing on hover and focus."""
    marks = [
        element
        for element in document.xpath("//main//*[contains(@class, 'chip')]")
        if "bare" not in element.get("class")
    ]
    named = document.xpath("//main//th | //main//dt | //main//h3 | //main//tr/td[1] | //main//label[@class='facet']")
    named += [option for option in document.xpath("//main//option") if option.get("value") in IDS]
    results = [*marks, *(row for row in named if row.text_content().strip() in NAMES)]
    explains = "[@data-explains or @data-explained-by]"
    is_explained = f"ancestor-or-self::*{explains} | .//*{explains}"
    return {" ".join(row.text_content().split()) for row in results if not row.xpath(is_explained)}


JARGON: Final = re.compile(
    r"\b(?:beat|heartbeat|transport|offloads?|MTU|replays?|staff|CV|autocorrelation|descheduled|cyclic|eager|rendezvous"
    r"|geometric mean|munge|memlock|netem|nftables|tbf|veth|tun|UCX|PSM|PMIx|verbs|uverbs\d*|NUMA|hwthread|socket|binding"
    r"|Hurst|AICc?|KS|δ|Welch|Benjamini|quantile|percentile|Poisson|Weibull|half-width|permutation|cross-validation"
    r"|RoCE(?:v2)?|Slingshot|ECN|RTT|ACKs?|SYN|goodput|in flight|jitter|congestion control|bandwidth-delay|keep-alives?"
    r"|zero-window|resident set|context switches|throttl\w+|NFS|Lustre|collectives?|one-sided|point-to-point|MPI window"
    r"|load balance|serial fraction|critical-path|off the CPU|launch overhead|capture overhead|certificate|topology"
    r"|emulator|deciding|machine-hours|operations per cycle|profile|seed|snap length)\b",
    re.IGNORECASE,
)
"""Words of networks, statistics, Linux and Rankwire that a page must explain at their place."""
_LABELS: Final = ("th", "dt", "label", "legend", "h1", "h2", "h3", "summary", "button", "option")
_PLAIN: Final = "NUMA node: cores|socket: the cores of one processor|mpi=pmi|one rank on each host in turn|^Run [^:]+: "
"""Labels that say themselves what their word means."""
_EXPLAINS: Final = "@data-explains or @data-explained-by"
_WITH_HINT: Final = ("label", "legend", "option")
"""Labels of inputs, whose hint explains them."""


def unexplained_jargon(document: html.HtmlElement) -> Iterator[str]:
    """Yield labels with a word of `JARGON` and without an explanation at their place."""
    for label in document.xpath("//main//*"):
        if label.tag not in _LABELS or not (words := " ".join(label.text_content().split())):
            continue
        if JARGON.search(words) is None or re.search(_PLAIN, words, re.IGNORECASE):
            continue
        around = label.xpath(f"ancestor-or-self::*[{_EXPLAINS}] | .//*[{_EXPLAINS}] | self::summary/..//*[{_EXPLAINS}]")
        if not around and not (label.tag in _WITH_HINT and _hint(label)):
            yield f"{label.tag}: {words[:80]}"


def _hint(label: html.HtmlElement) -> str:
    """Return the hint beside a label's input, if it is the only one there."""
    for field in label.iterancestors("div", "fieldset"):
        if hints := field.xpath(".//*[contains(@class, 'hint')]"):
            return "".join(hint.text_content() for hint in hints).strip() if len(hints) == 1 else ""
    return ""


def test_every_chip_is_defined() -> None:
    assert [state for state in CHIPS if not any(words_of(f"{kind}{state}") for kind in KINDS)] == []


def test_every_rule_of_findings_has_a_name_and_a_definition() -> None:
    called = {name.partition(",")[0] for name in FINDINGS}
    assert [name for name in called if not words_of(f"finding.{name}")] == []


def test_no_page_leaves_a_mark_a_name_or_jargon_unexplained(
    page: Client, person: User, submit: Callable[..., Experiment], run: Callable[..., None]
) -> None:
    User.objects.filter(pk=person.pk).update(is_superuser=True)
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
        *(
            "/experiments/new/",
            "/clusters/testbed/facts/",
            "/clusters/new/?kind=slurm",
            "/clusters/new/?kind=pbs",
            "/server/",
        ),
        *("/workloads/new/", "/projects/default/", "/account/", "/tasks/", "/people/", "/changes/", "/reports/new/"),
        *(f"/experiments/{slug}/" for slug in ("guster-2007-water", "monarc-1999-readers", "eadline-2006-hpl")),
    ]
    unexplained_by_page = {}
    for address in addresses:
        answer = page.get(address)
        assert answer.status_code == 200, address
        document = html.fromstring(f"<main>{answer.content.decode()}</main>")
        if words := unexplained(document) | {*unexplained_jargon(document)}:
            unexplained_by_page[address] = words
    assert not unexplained_by_page, "\n".join(
        f"{address}: {sorted(words)}" for address, words in unexplained_by_page.items()
    )


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("<th>Path MTU</th>", True),
        ("<th><span data-explains='The largest packet'>Path MTU</span></th>", False),
        ("<div><label>Offloads</label><p class='hint'></p></div>", True),
        ("<div><label>Offloads</label><p class='hint'>Cards that join packets</p></div>", False),
        ("<select><option>Inter-arrival CV</option></select>", True),
    ],
)
def test_jargon_is_found_unless_its_place_explains_it(source: str, is_found: bool) -> None:
    assert bool([*unexplained_jargon(html.fromstring(f"<div><main>{source}</main></div>"))]) is is_found


@pytest.mark.parametrize("source", ["<dt>Elapsed time</dt>", '<span class="chip ok">Firm</span>'])
def test_what_it_looks_for_can_be_found(source: str) -> None:
    assert unexplained(html.fromstring(f"<div><main>{source}</main></div>"))
