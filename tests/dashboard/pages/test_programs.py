"""Registration of programs on the page."""

from __future__ import annotations

from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import QueryDict
from django.urls import reverse

from dashboard.panels.new.draft import draft_from_post
from experiments.models import Program
from tests.dashboard.texts import text_of

pytestmark = pytest.mark.usefixtures("registered_programs")

FORM = {
    "name": "solver",
    "title": "A solver",
    "program": "/opt/solver control '--steps={steps}'",
    "placeholders": "steps: {type: integer, minimum: 1, default: 100}",
    "inputs": "control: |\n  title = {steps} steps",
    "threads": "2",
    "extract": "- {name: time_s, unit: s, direction: lower, regex: 'time (\\S+)'}",
    "keep": "['*.log']",
}


@pytest.fixture
def maintainer(page, person):
    person.memberships.update(role="maintainer")
    return page


def test_form_registers_a_program(maintainer):
    response = maintainer.post(reverse("program-new"), FORM)
    assert response.url == reverse("workloads"), text_of(response)
    stored = Program.latest("solver")
    assert stored.definition == {
        "name": "solver",
        "title": "A solver",
        "program": ["/opt/solver", "control", "--steps={steps}"],
        "placeholders": {"steps": {"type": "integer", "minimum": 1, "default": 100}},
        "inputs": {"control": "title = {steps} steps\n"},
        "threads": 2,
        "extract": [{"name": "time_s", "unit": "s", "direction": "lower", "regex": r"time (\S+)"}],
        "keep": ["*.log"],
    }
    listed = text_of(maintainer.get(reverse("workloads")))
    assert "A solver" in listed
    assert reverse("program", args=["solver"]) in listed
    assert "Time s" in listed
    assert "parameters.steps" in text_of(maintainer.get(reverse("new") + "?workload=solver"))


def test_it_writes_the_latest_version_back_into_the_form(maintainer):
    maintainer.post(reverse("program-new"), FORM)
    address = reverse("program", args=["solver"])
    text = text_of(maintainer.get(address))
    assert "/opt/solver control" in text
    assert "title = {steps} steps" in text
    assert maintainer.post(address, {**FORM, "program": "/opt/solver2 {steps}"}).status_code == 302
    assert Program.latest("solver").version == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"extract": "- {name: time_s, regex: 'no group'}"}, "needs a group"),
        ({"extract": "- {name: ["}, "cannot be read"),
        ({"placeholders": "steps: {type: text, default: 007}"}, "write 7 or '007'"),
        ({"placeholders": "steps: {type: integer, default: 010}"}, "write 8 or '010'"),
        ({"placeholders": "steps: 1\nsteps: 2"}, "'steps' is given twice"),
        ({"environment": "A: yes"}, "write true or 'yes'"),
        ({"program": "/opt/solver 'open"}, "cannot be read: No closing quotation"),
        ({"placeholders": ""}, "{steps} is not defined under placeholders"),
        ({"name": "water"}, "a workload 'water' exists already"),
        ({"threads": "many"}, "must be a whole number"),
    ],
)
def test_errors_are_shown_at_their_field_with_the_input(maintainer, wrong, words):
    response = maintainer.post(reverse("program-new"), {**FORM, **wrong})
    assert response.status_code == 422
    text = unescape(response.content.decode())
    assert words in text
    assert "A solver" in text
    assert Program.latest("solver") is None


def test_input_files_can_be_uploaded(maintainer):
    deck = SimpleUploadedFile("in.deck", b"run {steps}\r\nend\n")
    form = {**FORM, "uploads": [deck, SimpleUploadedFile("notes", b"none")]}
    assert maintainer.post(reverse("program-new"), form).status_code == 302
    texts = {"control": "title = {steps} steps\n", "in.deck": "run {steps}\nend\n", "notes": "none"}
    assert Program.latest("solver").definition["inputs"] == texts
    address = reverse("program", args=["solver"])
    shown = "control: |\n  title = {steps} steps\nnotes: none\nin.deck: |\n  run {steps}\n  end"
    assert "in.deck: |\n  run {steps}\n  end" in text_of(maintainer.get(address))
    assert maintainer.post(address, {**FORM, "inputs": shown}).status_code == 302
    assert Program.latest("solver").version == 1, "what is shown says the same when it is sent again"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("in.deck", b"\xff\xfe", "in.deck is not UTF-8 text"),
        ("in.deck", b"x" * 200_001, "or is longer than"),
        ("my deck", b"run", "'my deck' cannot be the name of an input file"),
    ],
)
def test_invalid_input_files_are_refused_at_the_field(maintainer, name, content, words):
    response = maintainer.post(reverse("program-new"), {**FORM, "uploads": SimpleUploadedFile(name, content)})
    assert response.status_code == 422
    assert words in unescape(response.content.decode())


def test_submitters_may_run_but_not_register(page):
    assert page.get(reverse("program-new")).status_code == 403
    assert page.post(reverse("program-new"), FORM).status_code == 403


def test_an_edited_experiment_keeps_its_version(maintainer):
    maintainer.post(reverse("program-new"), FORM)
    made = {"name": "study", "workload": "solver", "sweep_name": "steps", "sweep_values": "1, 2", "cluster": "testbed"}

    maintainer.post(reverse("program", args=["solver"]), {**FORM, "program": "/opt/solver2 {steps}"})
    post = QueryDict(mutable=True)
    post.update({**made, "parameters.version": "1"})
    assert draft_from_post(post)["parameters"] == {"version": 1}
