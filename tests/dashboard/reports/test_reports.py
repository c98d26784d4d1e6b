"""Reports: written, read, frozen, versioned, shared, downloaded."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from auditlog.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from lxml import html

from dashboard.reports.parts import Source, offered
from dashboard.reports.rendering import freeze, pieces_of
from dashboard.reports.views import changed_lines
from experiments.deletion import delete
from experiments.models import Experiment, Membership, Project, Report, ShareLink
from experiments.selectors.diagnosis import diagnosis_of
from tests.experiments import factories

Submit, Run = Callable[..., Experiment], Callable[..., None]


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", answer.content.decode())


def content_of(answer: Any) -> str:
    """The text of a page, without the markup of its terms."""
    return " ".join(html.fromstring(answer.content.decode()).text_content().split())


def test_it_is_made_of_an_experiment_in_one_click_and_says_what_its_page_says(
    page: Client, experiment: Experiment
) -> None:
    answer = page.post(f"/experiments/{experiment.slug}/report/")
    report = Report.objects.get()
    assert answer.url == f"/reports/{report.pk}/edit/"
    text = report.current.text
    headings = re.findall(r"^## (.+)$", text, re.M)
    assert headings == [
        "Question",
        "Set-up",
        "What was measured",
        "Figures",
        "Conclusions",
        "Limitations",
    ]
    assert experiment.specification_hash in text
    assert "hosts are virtual" in text
    words = text_of(page.get(f"/reports/{report.pk}/"))
    sentence = " ".join(diagnosis_of(experiment).answer.sentence.split())
    assert sentence.split(". ")[0] in content_of(page.get(f"/experiments/{experiment.slug}/diagnosis/"))
    assert (
        content_of(page.get(f"/reports/{report.pk}/")).count(sentence) == 2
    )  # in the pinned answer, and among the conclusions
    assert 'id="figure-part-' in words
    assert "Configurations, table" in words
    assert "its experiment is missing" not in words


def test_it_offers_every_chart_once_and_draws_both_names_of_the_deciding_one(
    page: Client, experiment: Experiment
) -> None:
    source = Source(experiment.owner)
    titles = [title for title, _line in offered(source, experiment)]
    assert len(set(titles)) == len(titles)
    assert {"deciding", "figure-0"} < source.charts(experiment).keys()


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("answer {slug}", "Answer"),
        ("table {slug} configurations", "Median (lowest to highest)"),
        ("table {slug} scaling", "Serial fraction"),
        ("table {slug} efficiency", "No counted trial has an MPI profile"),
        ("table {slug} trials", "Trust in the capture"),
        ("chart {slug} speedup", "figure-part-"),
        ("compare {slug} {other}", "Against A"),
    ],
)
def test_it_draws_every_kind_of_part(
    page: Client, experiment: Experiment, submit: Submit, run: Run, part: str, words: str
) -> None:
    other = submit(name="Other")
    run()
    text = f"{{{{ {part.format(slug=experiment.slug, other=other.slug)} }}}}"
    answer = page.post("/reports/preview/", {"text": text})
    assert words in text_of(answer)
    frozen = text.replace(" }}", " frozen }}")
    made = page.post("/reports/new/", {"title": "A", "text": frozen, "project": "default"})
    assert made.status_code == 302
    assert words in text_of(page.get(made.url))
    assert len(Report.objects.get().current.frozen) == 1


def test_a_frozen_part_keeps_its_data_and_a_live_one_follows(
    page: Client, submit: Submit, run: Run, empty_redis: Any
) -> None:
    experiment = submit()
    run(most=2)
    part = f"{{{{ table {experiment.slug} trials frozen }}}}"
    page.post("/reports/new/", {"title": "A", "text": part, "project": "default"})
    report = Report.objects.get()
    before = text_of(page.get(f"/reports/{report.pk}/"))
    assert before.count("Queued") > 0
    run()
    assert text_of(page.get(f"/reports/{report.pk}/")).count("Queued") == before.count("Queued")
    edited = {"title": "A", "text": f"More\n\n{part}", "base": "1"}
    page.post(f"/reports/{report.pk}/edit/", edited)
    assert text_of(page.get(f"/reports/{report.pk}/")).count("Queued") == before.count("Queued")
    page.post(f"/reports/{report.pk}/edit/", {**edited, "base": "2", "anew": "on"})
    assert text_of(page.get(f"/reports/{report.pk}/")).count("Queued") == 0
    assert text_of(page.get(f"/reports/{report.pk}/versions/2/")).count("Queued") == before.count("Queued")


def test_a_later_save_shows_the_earlier_one_and_loses_neither(page: Client, report: Report, person: User) -> None:
    address = f"/reports/{report.pk}/edit/"
    colleague = Client()
    colleague.force_login(factories.person("sam", "submitter"))
    assert colleague.post(address, {"title": "Water", "text": "Theirs", "base": "1"}).status_code == 302
    answer = page.post(address, {"title": "Water", "text": "My own words", "base": "1"})
    assert answer.status_code == 409
    words = text_of(answer)
    assert "sam saved version 2" in words
    assert "+ Theirs" in words
    assert "My own words</textarea>" in words
    assert 'name="base" value="2"' in words
    assert report.versions.count() == 2
    assert page.post(address, {"title": "Water", "text": "Both", "base": "2"}).status_code == 302
    assert [version.text for version in report.versions.order_by("number")][1:] == ["Theirs", "Both"]


def test_versions_tell_what_they_changed_and_come_back(page: Client, report: Report) -> None:
    page.post(f"/reports/{report.pk}/edit/", {"title": "New", "text": "Other words.", "base": "1", "note": "Shorter"})
    words = text_of(page.get(f"/reports/{report.pk}/versions/2/"))
    assert "- Words." in words
    assert "+ Other words." in words
    assert "Shorter" in words
    assert "not the newest" in text_of(page.get(f"/reports/{report.pk}/versions/1/"))
    page.post(f"/reports/{report.pk}/versions/1/restore/")
    report.refresh_from_db()
    assert (report.version, report.title) == (3, "Water")
    assert report.current.text.startswith("Words.")
    assert report.current.note == "Version 1 restored"


def test_versions_keep_the_reserve_of_the_disk(
    page: Client, report: Report, experiment: Experiment, settings: Any
) -> None:
    page.post(f"/reports/{report.pk}/edit/", {"title": "New", "text": "Other words.", "base": "1"})
    settings.DISK_RESERVE_BYTES = 1 << 60
    page.post("/reports/new/", {"title": "A", "text": "Words.", "project": report.project.slug})
    page.post(f"/reports/{report.pk}/edit/", {"title": "New", "text": "More words.", "base": "2"})
    page.post(f"/reports/{report.pk}/versions/1/restore/")
    page.post(f"/experiments/{experiment.slug}/report/")
    rest = page.put(f"/api/v1/reports/{report.pk}/", {"version": 2, "text": "x"}, content_type="application/json")
    assert rest.status_code == 400
    assert Report.objects.count() == 1
    assert report.versions.count() == 2


def test_readers_see_only_parts_of_experiments_that_they_may_read(
    page: Client, report: Report, experiment: Experiment, person: User
) -> None:
    """Frozen data too; a user can edit the text around a hidden part."""
    frozen = report.current.text.replace(" time ", " time frozen ")
    page.post(f"/reports/{report.pk}/edit/", {"title": "A", "text": frozen, "base": "1"})
    assert report.versions.latest("number").frozen
    hidden = Project.objects.create(slug="hidden", name="Hidden")
    Experiment.objects.filter(pk=experiment.pk).update(project=hidden)
    for address in ("", "report.html", "versions/1/", "versions/2/"):
        words = text_of(page.get(f"/reports/{report.pk}/{address}"))
        assert "you may not read it" in words, address
        assert "figure-part-" not in words, address
        assert experiment.name not in words, address
    edited = page.post(f"/reports/{report.pk}/edit/", {"title": "A", "text": f"More\n\n{frozen}", "base": "2"})
    assert edited.status_code == 302
    hidden.memberships.create(user=person, role=Membership.Role.VIEWER)
    assert "figure-part-" in text_of(page.get(f"/reports/{report.pk}/"))


def test_a_hidden_part_links_to_the_trash_for_users_who_may_restore_it(
    page: Client, report: Report, experiment: Experiment, person: User
) -> None:
    delete(experiment, by=person)
    assert 'href="/experiments/chosen/deleted/">Restore it' in " ".join(
        text_of(page.get(f"/reports/{report.pk}/")).split()
    )
    source = Source(User.objects.create_user("stranger"))
    assert {piece.is_in_trash for piece in pieces_of(report.current.text, source, {})} == {False}


def test_it_is_shared_with_its_parts_and_nothing_else(page: Client, report: Report, experiment: Experiment) -> None:
    answer = page.post(f"/reports/{report.pk}/share/", {"days": "7"})
    link = re.search(r"http://testserver(/shared/[\w-]{20,}/)", answer.content.decode())
    assert link is not None
    visitor = Client()
    response = visitor.get(link[1], follow=True)
    assert response.redirect_chain[-1][0] == f"/reports/{report.pk}/"
    assert "figure-part-" in text_of(response)
    for control in ("/edit/", "Restore", "/share/", "Delete", f'href="{experiment.get_absolute_url()}"'):
        assert control not in text_of(response)
    assert visitor.get(f"/reports/{report.pk}/report.html").status_code == 200
    other = Report.write(report.project, "Other", "Secret", {}, by=None)
    for closed in (experiment.get_absolute_url(), f"/reports/{report.pk}/versions/1/", "/reports/"):
        assert visitor.get(closed).status_code == 302, closed
    assert visitor.get(f"/reports/{other.pk}/").status_code == 302
    page.post(f"/shares/{ShareLink.objects.get().pk}/end/")
    assert visitor.get(f"/reports/{report.pk}/").status_code == 302


def test_the_list_finds_words_of_the_newest_text_and_deletion_is_logged(page: Client, report: Report) -> None:
    assert "Water" in text_of(page.get("/reports/?q=words"))
    page.post(f"/reports/{report.pk}/edit/", {"title": "Water", "text": "Changed", "base": "1"})
    assert "No report matches" in text_of(page.get("/reports/?q=Words."))
    assert page.post(f"/reports/{report.pk}/delete/").status_code == 302
    assert not Report.objects.exists()
    actions = LogEntry.objects.filter(content_type__model="report").order_by("pk").values_list("action", flat=True)
    assert list(actions) == [LogEntry.Action.CREATE, LogEntry.Action.UPDATE, LogEntry.Action.DELETE]


def test_a_part_is_pinned_at_the_end_of_a_report(page: Client, report: Report, experiment: Experiment) -> None:
    address = f"/experiments/{experiment.slug}/pin/"
    assert "Chart: Speed-up" in text_of(page.get(address))
    part = f"{{{{ chart {experiment.slug} speedup }}}}"
    assert f"Of the experiment {experiment.name}" in text_of(page.get(address))
    page.post(address, {"part": part, "report": report.pk})
    pinned = report.versions.latest("number")
    assert pinned.text.endswith(f"\n\n{part}\n")
    assert pinned.note == f"Pinned chart: Speed-up of {experiment.name}"
    assert page.post(address, {"part": "{{ answer x }}", "report": report.pk}).status_code == 400


def test_a_chart_is_pinned_from_the_page_that_draws_it(
    page: Client, report: Report, experiment: Experiment, submit: Callable[..., Experiment], run: Callable[..., None]
) -> None:
    other = submit(name="Other")
    run()
    connection.check_constraints()  # as a commit does: triggers summarise
    addresses = {
        experiment.get_absolute_url(): "c-time",
        f"/compare/?of=e:{experiment.slug},e:{other.slug}": "c-change",
        "/explore/?workload=water&project=default&y=packets&facet=experiment": "c-pivot-1",
        f"/history/{experiment.configurations.latest('pk').hash}/testbed/?metric=packets": "c-history",
    }
    for address, panel in addresses.items():
        document = html.fromstring(page.get(address).content.decode())
        (link,) = document.xpath(f"//*[@id='{panel}']//a[@aria-label='Pin chart to a report']/@href")
        form = html.fromstring(page.get(link).content.decode()).xpath("//main//form")[0]
        part = dict(form.form_values())["part"]
        answer = page.post(link, {"part": part, "report": report.pk}, follow=True)
        pinned = answer.context["pieces"][-1]
        drawn = json.loads(document.get_element_by_id(f"figure-{panel[2:]}").text)
        assert [trace["y"] for trace in pinned.charts[0].figure["data"]] == [trace["y"] for trace in drawn["data"]]
    assert report.versions.count() == 5
    notes = list(report.versions.order_by("number").values_list("note", flat=True))[1:]
    assert all(experiment.name in note and "=" not in note for note in notes), "names, not the query"


def test_a_chart_is_pinned_to_a_new_report(page: Client, experiment: Experiment, library: Project) -> None:
    part = {"part": f"{{{{ chart {experiment.slug} time }}}}"}
    assert page.post("/reports/pin/", part).status_code == 400, "a new report needs a title"
    page.post("/reports/pin/", part | {"title": "Fresh"})
    fresh = Report.objects.get(title="Fresh")
    assert (fresh.current.text, fresh.project) == (f"{part['part']}\n", library)
    for wrong in (
        *("{{ explore colour=nosuch.-&x=1 pivot-0 }}", "{{ chart nosuch time }}", "words", ""),
        *("{{ history configuration=0&cluster=testbed&metric=packets history }}", "{{ history metric=no history }}"),
    ):
        assert page.post("/reports/pin/", {"part": wrong, "title": "Wrong"}).status_code == 400, wrong
    assert not Report.objects.filter(title="Wrong").exists()


def test_pinned_charts_of_explore_show_what_the_reader_may_see(experiment: Experiment, person: User) -> None:
    connection.check_constraints()  # as a commit does: triggers summarise
    text = "{{ explore workload=water&project=default pivot-0 }}\n\n{{ explore workload=water pivot-0 frozen }}"
    frozen = freeze(text, Source(person), {})
    visitor = factories.person("visitor")
    live, stored = pieces_of(text, Source(person), frozen)
    assert live.charts
    assert stored.charts
    assert [bool(piece.charts) for piece in pieces_of(text, Source(visitor), frozen)] == [False, False]


def test_a_pinned_answer_has_its_causes_and_what_the_trials_cannot_tell(page: Client, experiment: Experiment) -> None:
    diagnosis = diagnosis_of(experiment)
    words = content_of(page.post("/reports/preview/", {"text": f"{{{{ answer {experiment.slug} }}}}"}))
    sentences = [*diagnosis.study.report.cannot_tell, *(f.statement for f in diagnosis.facts if f.fold == "cause")]
    assert diagnosis.study.report.cannot_tell
    assert all(" ".join(sentence.split()) in words for sentence in sentences)


def test_it_leaves_as_markdown(page: Client, report: Report) -> None:
    answer = page.get(f"/reports/{report.pk}/report.md")
    assert answer["Content-Disposition"] == 'attachment; filename="water.md"'
    assert answer.content.decode() == f"# Water\n\n{report.current.text}"


def test_the_one_file_asks_no_network_for_anything(page: Client, report: Report) -> None:
    text = page.get(f"/reports/{report.pk}/report.html").content.decode()
    assert not re.search(r'(?:src|href)="(?!#)', re.sub(r"(?s)<script.*?</script>", "", text))
    assert not re.search(r"url\((?!\"?data:)", text.split("</style>")[0])
    assert "Plotly" in text
    assert text.count("</script>") == text.count("<script")


def test_changed_lines_compares_no_huge_texts() -> None:
    """The time grows with the square of the lines: two texts of 200 kB took hours."""
    before = "\n".join(chr(0x4E00 + number % 110) for number in range(60_000))
    after = "\n".join(reversed(before.split("\n")))
    began = time.process_time()
    assert [sign for sign, _ in changed_lines(before, after)] == [" "]
    largest = [("\n".join(f"{mark}{n % 7}" if n % 2 else str(n) for n in range(1000))) for mark in "ab"]
    assert list(changed_lines(*largest))
    assert time.process_time() - began < 10
