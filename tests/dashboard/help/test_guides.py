"""The guides as pages: each opens, links lead to pages, words are found."""

from __future__ import annotations

import time

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from lxml import html

from analysis.catalogue import METRICS
from dashboard.help.guides import FOLDER, INDEX, address, guides, search, url_of
from dashboard.help.markdown import read
from dashboard.help.version import version


def content(client: Client, at: str) -> html.HtmlElement:
    response = client.get(at)
    assert response.status_code == 200, at
    return html.fromstring(response.content.decode())


def test_it_lists_every_document(page: Client) -> None:
    linked = set(content(page, reverse("help")).xpath("//main//a/@href"))
    assert {url_of(path.stem) for path in FOLDER.rglob("*.md") if path.stem != INDEX} <= linked


def test_every_link_of_a_guide_arrives(page: Client) -> None:
    every = {url_of(name): content(page, url_of(name)) for name in guides()}
    anchors = {at: {"", *document.xpath("//@id")} for at, document in every.items()}
    checked = 0
    for at, document in every.items():
        for link in document.xpath("//main//article//a/@href | //nav[@aria-label='Contents']//a/@href"):
            target, _, anchor = link.partition("#")
            if target.startswith("http"):
                continue
            checked += 1
            assert anchor in anchors[target or at], f"{at}: {link}"
    assert checked > 50


def test_anchors_of_a_guide_are_unique(page: Client) -> None:
    for name in guides():
        identifiers = content(page, url_of(name)).xpath("//@id")
        assert len(identifiers) == len(set(identifiers)), name


def test_every_metric_of_the_catalogue_has_an_anchor(page: Client) -> None:
    identifiers = content(page, reverse("guide", args=["metrics"])).xpath("//tr/@id")
    assert set(METRICS) <= set(identifiers)


def test_examples_call_the_site_at_its_own_address(page: Client) -> None:
    for name in ("use-a-token", "rest", "rest-lists", "client", "run-without-a-browser", "follow-histories"):
        text = page.get(url_of(name), headers={"host": "127.0.0.1:8480"}).content.decode()
        assert "http://127.0.0.1:8480" in text
        assert "127.0.0.1:8000" not in text
    proxy = page.get(url_of("run-behind-a-proxy"), headers={"host": "127.0.0.1:8480"}).content.decode()
    assert "127.0.0.1:8480" not in proxy


def test_unknown_guide_is_not_found_and_a_former_one_leads_to_the_list(page: Client) -> None:
    assert page.get("/help/nothing/").status_code == 404
    assert page.get("/help/user-guide/").url == "/help/"


def test_it_shows_markup_in_a_document_as_text() -> None:
    html_text = read("# A\n\n<script>alert(1)</script>\n\n[x](javascript:alert)", address).html
    assert "<script" not in html_text
    assert 'href="javascript' not in html_text


def test_comments_of_a_document_are_not_shown() -> None:
    html_text = read("# A\n\n<!-- rows -->\n| a | b |\n|---|---|\n| c | d |\n<!-- /rows -->\n", address).html
    assert "rows" not in html_text
    assert html_text.count("<td") == 2
    assert [name for name, guide in guides().items() if "&lt;!--" in guide.page.html] == []


def test_cells_of_a_table_name_their_column() -> None:
    table = read("# A\n\n| a | b `c` |\n|---|---|\n| 1 | 2 |\n", address).html
    document = html.fromstring(table)
    assert document.xpath("//td/@data-name") == ["a", "b c"]


def test_help_shows_the_version_and_the_changelog_has_a_page(page: Client) -> None:
    assert version() in content(page, reverse("help")).text_content()
    assert "0.1.0" in content(page, "/help/changelog/").text_content()
    assert address("../../CHANGELOG.md") == "/help/changelog/"


def test_headings_of_one_name_differ_in_their_anchors() -> None:
    assert [section.anchor for section in read("# A\n\n## Of `it`, so\n\n## Of it so", address).sections] == [
        "a",
        "of-it-so",
        "of-it-so-1",
    ]


def test_links_lead_to_pages_or_are_words() -> None:
    assert address("../reference/rest.md#errors") == "/help/rest/#errors"
    assert address("index.md") == "/help/"
    assert address("../decisions/0014-cells.md") == "/help/0014-cells/"
    assert address("https://example.org/") == "https://example.org/"
    assert read("# A\n\nsee [this *list*](../script/packages.txt).", address).html == "<p>see this <em>list</em>.</p>\n"


def test_pictures_of_a_guide_are_served() -> None:
    (picture, *_) = sorted((settings.BASE_DIR / "docs" / "images").iterdir())
    document = html.fromstring(read(f"# A\n\n![What it shows](images/{picture.name})", address).html)
    (image,) = document.iter("img")
    assert image.get("src") == f"/static/guides/{picture.name}"
    assert image.get("alt") == "What it shows"


def test_all_words_must_be_there() -> None:
    (hit,) = [hit for hit in search("mean over ranks cpu_mean_rank_s") if hit.section.anchor == "cpu_mean_rank_s"]
    assert "mean over ranks" in hit.excerpt
    assert not search("conditions zzyzx")


@pytest.mark.parametrize(
    "words",
    [
        *("regression", "upgrade", "slow node", "InfiniBand", "Kubernetes", "srun", "LDAP", "token"),
        *("energy", "speedup", "efficiency", "quota", "webhook"),
    ],
)
def test_hits_far_below_the_best_are_not_listed(words: str) -> None:
    hits = search(words)
    assert 1 <= len(hits) <= 20
    assert not {"security", "security-attempts", "security-tests", INDEX} & {hit.guide.name for hit in hits}


def test_excerpts_of_table_rows_are_readable() -> None:
    excerpts = {hit.section.anchor: hit.excerpt for words in ("LDAP", "quota", "energy") for hit in search(words)}
    assert excerpts["RANKWIRE_LDAP_BIND"] == "Account that searches the directory (default: anonymous)"
    assert excerpts["quotas"].startswith(
        "queued trials: RANKWIRE_QUOTA_QUEUED_TRIALS, new trials are refused. machine-hours"
    )
    assert excerpts["energy_dram_j"].startswith("Memory of all hosts. (unit: J, better: lower, source: ")


def test_a_search_of_many_words_takes_no_time() -> None:
    """16 000 characters took 17 s of CPU time."""
    search("mpi")
    began = time.process_time()
    assert search("a " * 30_000)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("words", ["export csv", "energy", "backup", "fabric", "queued"])
def test_excerpts_are_neither_repeated_nor_titles(words: str) -> None:
    hits = search(words)
    excerpts = [hit.excerpt for hit in hits if hit.section.level]
    assert len(excerpts) == len(set(excerpts)) > 1
    assert not {hit.section.title.partition(" (")[0] for hit in hits} & set(excerpts)
    assert [hit for hit in hits if hit.excerpt.startswith(f"{hit.section.anchor} ")] == []


@pytest.mark.parametrize(
    ("words", "message"), [("zzyzx", "No section contains all of these words"), ("late sender", "Waits for")]
)
def test_the_page_says_what_was_found(page: Client, words: str, message: str) -> None:
    assert message in content(page, reverse("help") + f"?q={words}").text_content()


def test_results_replace_the_list_of_guides(page: Client) -> None:
    guide = "Manage accounts"
    assert guide in content(page, reverse("help")).text_content()
    assert guide not in content(page, f"{reverse('help')}?q=late+sender").text_content()
    assert guide in content(page, f"{reverse('help')}?q=zzyzx").text_content()
