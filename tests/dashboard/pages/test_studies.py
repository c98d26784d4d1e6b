"""The page of studies: every published study, the latest own run beside it, and one click to run it."""

import re

import pytest
from django.urls import reverse

from dashboard.pages.studies import STUDIES
from experiments.library import built_in
from experiments.library.studies import published_studies
from experiments.models import Experiment
from tests.dashboard.studies_measured import READERS, measured, read
from tests.dashboard.texts import text_of


def test_it_shows_every_published_study_with_both_sizes(page):
    text = text_of(page.get(reverse("studies")))
    for study in Experiment.objects.filter(published=True):
        assert study.get_absolute_url() in text
    for stem in ("water", "wan-pingpong", "concurrent-readers", "hpl-tuning", "data-staging"):
        for size in ("quick", "full"):
            if any(file.stem == f"{stem}-{size}" for file in built_in()):
                assert reverse("study-run", args=[f"{stem}-{size}"]) in text
    assert "4 hosts: 200.4" in text
    assert "Nothing yet" in text


def test_it_shows_the_studies_in_their_own_order_before_others(page, library):
    Experiment.objects.filter(slug="york-staging").update(slug="a-study-of-somebody-else")
    cards = [card["study"].slug for card in page.get(reverse("studies")).context["cards"]]
    assert cards == [
        "guster-2007-water",
        "pinning-2007-wan",
        "monarc-1999-readers",
        "eadline-2006-hpl",
        "a-study-of-somebody-else",
    ]
    assert {study.slug for study in published_studies()} == set(STUDIES)


def test_it_says_in_brief_what_the_parts_show(page, library):
    measured(library, READERS, read)
    text = re.sub(r"<[^>]+>", " ", text_of(page.get(reverse("studies"))))
    assert "10 jobs accepted; used up first: client CPU" in text, "the published study on 1 Gbit/s"
    assert "1 job accepted; used up first: link" in text
    assert "7 of 8: 14.53" in text
    for line in ("171.4\u202f$", "142\u202f$", "16.14", "51.7\u202f%"):
        assert line in text
    assert "4.4 times shorter than pull, +589\u202f% bandwidth" in text
    assert "30 times shorter than pull (estimated)" in text


@pytest.mark.parametrize(
    ("stem", "words"),
    [("wan-pingpong-jitter", "Run jitter"), ("hpl-tuning-netpipe", "Run netpipe"), ("link-sweep", "Run link-sweep")],
)
def test_it_offers_what_else_belongs_to_a_study(page, stem, words):
    text = text_of(page.get(reverse("studies")))
    form = text.split(f'action="{reverse("study-run", args=[stem])}"')[1].split("</form>")[0]
    assert words in form


def test_every_built_in_experiment_belongs_to_a_study(page):
    text = text_of(page.get(reverse("studies")))
    for file in built_in():
        assert text.count(f'action="{reverse("study-run", args=[file.stem])}"') == 1


def test_it_names_a_missing_program_only_at_what_needs_it(page, monkeypatch, tmp_path):
    """A machine that has everything but NetPIPE."""
    for name in ("lmp", "hpcc", "blastn", "makeblastdb", "uftp", "uftpd", "setpriv"):
        program = tmp_path / name
        program.touch()
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    text = text_of(page.get(reverse("studies")))
    for stem, missing in (("hpl-tuning-netpipe", True), ("hpl-tuning-quick", False)):
        form = text.split(f'action="{reverse("study-run", args=[stem])}"')[1].split("</form>")[0]
        assert ("needs netpipe-openmpi" in form) is missing
        assert (" disabled" in form) is missing


def test_it_shows_the_latest_own_experiment_with_results(page, submit, run):
    submit(name="Older")
    run()
    submit(name="Not yet run")
    text = text_of(page.get(reverse("studies")))
    assert "Older" in text
    assert "Not yet run" not in text


def test_it_starts_the_built_in_experiment_with_one_click(page, person):
    response = page.post(reverse("study-run", args=["water-quick"]))
    experiment = Experiment.objects.get(published=False)
    assert response.url == experiment.get_absolute_url()
    assert experiment.owner == person
    assert experiment.trials.filter(state="queued").count() == 15


def test_it_starts_nothing_when_it_only_reads(page):
    assert page.get(reverse("study-run", args=["water-quick"])).status_code == 405


def test_it_does_not_find_an_unknown_study(page):
    assert page.post(reverse("study-run", args=["alchemy"])).status_code == 404


def test_it_lets_a_viewer_start_nothing(page, person):
    person.memberships.update(role="viewer")
    assert page.post(reverse("study-run", args=["water-quick"])).status_code == 403
    assert not Experiment.objects.filter(published=False).exists()


@pytest.mark.parametrize("count", [1, 3])
def test_it_answers_the_page_of_studies_with_a_fixed_number_of_queries(
    page, submit, run, django_assert_num_queries, count
):
    for number in range(count):
        submit(name=f"Study {number}")
    run()
    page.get(reverse("studies"))
    with django_assert_num_queries(32):
        page.get(reverse("studies"))


def test_no_two_buttons_of_a_study_are_called_the_same(page):
    for card in page.get(reverse("studies")).context["cards"]:
        names = [name for _, name in card["sizes"]]
        assert len(names) == len(set(names)), card["study"].slug
