"""The page of studies."""

from uuid import uuid4

import pytest
from django.urls import reverse

from dashboard.states import STRENGTH
from experiments.library import built_in
from experiments.models import Experiment
from experiments.selectors.diagnosis import answers_of
from tests.dashboard.texts import text_of


def test_it_shows_every_published_study_with_both_sizes(page):
    response = page.get(reverse("studies"))
    text = text_of(response)
    for study in Experiment.objects.filter(published=True):
        assert study.get_absolute_url() in text
    for stem in ("water", "wan-pingpong", "concurrent-readers", "hpl-tuning", "data-staging"):
        for size in ("quick", "full"):
            if any(file.stem == f"{stem}-{size}" for file in built_in()):
                assert reverse("study-run", args=[f"{stem}-{size}"]) in text
    assert {card["own"] for card in response.context["cards"]} == {None}


def test_every_built_in_experiment_belongs_to_a_study(page):
    text = text_of(page.get(reverse("studies")))
    for file in built_in():
        assert text.count(f'action="{reverse("study-run", args=[file.stem])}"') == 1


def test_missing_program_is_shown_only_at_studies_that_need_it(page, monkeypatch, tmp_path):
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


def test_it_starts_the_built_in_experiment_with_one_click(page, person):
    response = page.post(reverse("study-run", args=["water-quick"]))
    experiment = Experiment.objects.get(published=False)
    assert response.url == experiment.get_absolute_url()
    assert experiment.owner == person
    assert experiment.trials.filter(state="queued").count() == 9


def test_only_experiments_of_the_study_count_as_measured_here(page, person):
    page.post(reverse("study-run", args=["water-quick"]))
    original = Experiment.objects.get(published=False)
    clone = Experiment.objects.get(pk=original.pk)
    clone.pk, clone.uid, clone.slug, clone.name = None, uuid4(), "clone", "The same on a slow link"
    clone.specification = {**original.specification, "link": {"bandwidth": 10_000_000}}
    clone.save()
    cards = page.get(reverse("studies")).context["cards"]
    parameters = {card["study"].slug: card["own"] for card in cards if card["own"]}
    assert parameters == {"guster-2007-water": original}


def test_measured_here_has_the_strength_of_its_answer_and_its_flagged_trials(page, run):
    page.post(reverse("study-run", args=["water-quick"]))
    run()
    experiment = Experiment.objects.get(published=False)
    experiment.trials.update(trust="degraded")
    (card,) = [card for card in page.get(reverse("studies")).context["cards"] if card["own"]]
    strength = answers_of([experiment])[experiment.pk].strength
    assert card["strength"] == STRENGTH[strength]
    assert card["progress"].flagged == card["progress"].finished > 0


@pytest.mark.parametrize("count", [1, 3])
def test_it_answers_the_page_of_studies_with_a_fixed_number_of_queries(page, run, django_assert_num_queries, count):
    for _ in range(count):
        page.post(reverse("study-run", args=["water-quick"]))
    run()
    page.get(reverse("studies"))
    with django_assert_num_queries(10):
        page.get(reverse("studies"))
