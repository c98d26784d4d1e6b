"""Registration of programs on the page."""

from __future__ import annotations

import time
from html import unescape

import pytest
from django.contrib.messages import SUCCESS, get_messages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone
from lxml import html

from dashboard.panels.new.draft import draft_from_post
from dashboard.templatetags.rankwire import versions
from experiments.errors import InvalidSpec
from experiments.models import Experiment, Hold, Program, State, TrialResult
from experiments.models.program import read_definition
from tests.dashboard.texts import text_of
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("registered_programs")

FORM = {
    "name": "solver",
    "title": "A solver",
    "program": "/opt/solver control '--steps={steps}'",
    "placeholders.0.name": "steps",
    "placeholders.0.type": "integer",
    "placeholders.0.default": "100",
    "placeholders.0.allowed": "1..",
    "inputs.0.name": "control",
    "inputs.0.text": "title = {steps} steps\r\n",
    "threads": "2",
    "extract.0.name": "time_s",
    "extract.0.unit": "s",
    "extract.0.direction": "lower",
    "extract.0.regex": r"time (\S+)",
    "extract.0.pick": "last",
    "extract.0.required": "yes",
    "keep": "*.log",
}


@pytest.fixture
def maintainer(page, person):
    person.memberships.update(role="maintainer")
    return page


def test_form_registers_a_program(maintainer):
    response = maintainer.post(reverse("program-new"), FORM)
    assert response.url == reverse("workload", args=["solver"]), text_of(response)
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
    new = reverse("new") + "?workload=solver"
    page = text_of(maintainer.get(response.url))
    assert reverse("program", args=["solver"]) in page
    assert new in page
    assert reverse("workload", args=["solver"]) in text_of(maintainer.get(reverse("workloads")))
    assert "parameters.steps" in text_of(maintainer.get(new))


def test_page_of_a_program_shows_its_parameters_first(maintainer):
    more = {"placeholders.1.name": "mode", "placeholders.1.type": "text", "placeholders.1.allowed": "fast, slow"}
    maintainer.post(reverse("program-new"), {**FORM, **more, "program": "/opt/solver {steps} {mode}"})
    context = maintainer.get(reverse("workload", args=["solver"])).context
    rows = [(row["name"], row["default"], row["allowed"]) for row in context["parameters"]]
    assert rows[:2] == [("steps", 100, "1 or more"), ("mode", None, "fast, slow")]
    assert [name for name, *_ in rows[2:]] == ["threads", "version"]
    staging = maintainer.get(reverse("workload", args=["data-staging"])).context["parameters"][0]
    assert staging["allowed"] == "pull, multicast, tree"
    assert context["version"] == 1


def test_page_of_a_program_shows_commands_patterns_and_versions(maintainer):
    maintainer.post(reverse("program-new"), FORM)
    maintainer.post(reverse("program", args=["solver"]), {**FORM, "program": "/opt/solver2 {steps}"})
    response = maintainer.get(reverse("workload", args=["solver"]))
    commands = [(version.version, command) for version, command in response.context["versions"]]
    assert commands == [(2, "/opt/solver2 {steps}"), (1, "/opt/solver control --steps={steps}")]
    assert [source for _, source in response.context["figures"]] == [r"time (\S+)"]
    assert unescape(commands[1][1]) in unescape(response.content.decode())
    assert r"time (\S+)" in unescape(response.content.decode())
    assert "versions" in maintainer.get(reverse("workload", args=["water"])).context


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ({"program": "/opt/solver {steps} | tee out"}, "No shell runs the command: the program gets |"),
        ({"program": "/opt/solver {steps} 2>errors"}, "No shell runs the command: the program gets 2>errors"),
        ({"program": "no-such-solver {steps}"}, "no-such-solver is not in the PATH of this server"),
        ({"program": "bin/solver {steps}"}, "bin/solver starts in the empty directory"),
        ({"extract.0.name": "", "extract.0.unit": "", "extract.0.regex": ""}, "Without a figure"),
        ({"extract.0.label": "elapsed time"}, "Rankwire also measures “elapsed time”"),
        ({"extract.0.name": "elapsed_time"}, "Rankwire also measures “Elapsed time”"),
    ],
)
def test_likely_mistakes_are_registered_only_after_confirmation(maintainer, odd, words):
    refused = maintainer.post(reverse("program-new"), {**FORM, **odd})
    assert refused.status_code == 422
    (caution,) = refused.context["cautions"]
    assert caution.startswith(words)
    assert Program.latest("solver") is None
    assert maintainer.post(reverse("program-new"), {**FORM, **odd, "anyway": "on"}).status_code == 302
    assert maintainer.post(reverse("program", args=["solver"]), {**FORM, **odd, "title": "Same"}).status_code == 302


def test_a_new_program_does_not_replace_one_of_its_name(maintainer):
    maintainer.post(reverse("program-new"), FORM)
    refused = maintainer.post(reverse("program-new"), {**FORM, "title": "Another", "program": "/opt/other {steps}"})
    assert refused.status_code == 422
    assert list(refused.context["form"].errors) == ["name"]
    refused = maintainer.post(reverse("program-new"), {**FORM, "extract.0.regex": "("})
    assert set(refused.context["form"].errors) == {"extract.0.regex", "name"}
    assert (Program.latest("solver").title, Program.latest("solver").version) == ("A solver", 1)


def test_a_program_of_path_or_of_an_input_file_needs_no_confirmation(maintainer):
    for name, program in (("listing", "ls {steps}"), ("script", "./control --filter=a|b {steps}")):
        assert maintainer.post(reverse("program-new"), {**FORM, "name": name, "program": program}).status_code == 302


def test_parameter_with_choices_is_a_select_in_the_form_of_an_experiment(maintainer):
    more = {
        "placeholders.1.name": "mode",
        "placeholders.1.type": "text",
        "placeholders.1.allowed": "fast, slow",
        "placeholders.2.name": "size",
        "placeholders.2.default": "64",
        "placeholders.2.allowed": "..90; 32, 64.0, 99",
    }
    maintainer.post(reverse("program-new"), {**FORM, **more, "program": "/opt/solver {steps} {mode} {size}"})

    def options(response, name):
        (select,) = html.fromstring(response.content).xpath(f"//select[@name='parameters.{name}']")
        return select.value, [option.get("value") for option in select.xpath("option[not(@hidden)]")], select.attrib

    new = maintainer.get(reverse("new") + "?workload=solver")
    assert options(new, "mode")[:2] == ("", ["", "fast", "slow"])
    assert options(new, "size")[:2] == ("64", ["32", "64"])
    draft = {"workload": "solver", "cluster": "testbed", "name": "N", "parameters.mode": "odd"}
    draft |= {"sweep_name": "size", "sweep_values": "32, 64"}
    fields = maintainer.post(reverse("new-fields"), draft)
    assert options(fields, "mode")[:2] == ("odd", ["fast", "slow", "odd"])
    assert "disabled" in options(fields, "size")[2]
    assert options(maintainer.get(reverse("new") + "?workload=data-staging"), "staging")[1] == [
        "pull",
        "multicast",
        "tree",
    ]


def test_a_program_that_is_not_here_is_registered_with_a_warning(maintainer):
    for path, count in (("/opt/solver", 1), ("/bin/sh", 0)):
        texts = {**FORM, "name": path.rpartition("/")[2], "program": f"{path} control '--steps={{steps}}'"}
        assert maintainer.post(reverse("program-output"), texts).context["absent"] == path * count
        page = maintainer.post(reverse("program-new"), texts, follow=True)
        assert text_of(page).count(f"{path} was not found on this machine") == count


def test_errors_are_summarised_by_the_labels_of_their_fields(maintainer):
    wrong = {"program": "/opt/solver 'open", "placeholders.7.name": "1st", "extract.0.regex": "("}
    links = maintainer.post(reverse("program-new"), {**FORM, **wrong}).context["form"].error_links
    assert {"Command of each rank", "Parameter 2, Name", "Figure 1, Pattern"} >= {label for label, _ in links}
    assert ("Parameter 2, Name", "err-placeholders-7-name") in links


def test_form_leads_on_to_a_new_experiment(maintainer):
    response = maintainer.post(reverse("program-new"), {**FORM, "start": "on"})
    assert response.url == reverse("new") + "?workload=solver"


def test_blank_rows_are_no_rows(maintainer):
    blank = {"extract.1.name": " ", "extract.1.direction": "neutral", "extract.7.regex": "", "parts.0.program": ""}
    maintainer.post(reverse("program-new"), {**FORM, **blank})
    assert len(Program.latest("solver").definition["extract"]) == 1
    assert "parts" not in Program.latest("solver").definition


def test_it_writes_the_latest_version_back_into_the_form(maintainer):
    maintainer.post(reverse("program-new"), FORM)
    address = reverse("program", args=["solver"])
    text = text_of(maintainer.get(address))
    assert "/opt/solver control" in text
    assert "title = {steps} steps" in text
    assert maintainer.post(address, {**FORM, "program": "/opt/solver2 {steps}"}).status_code == 302
    assert Program.latest("solver").version == 2


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        ({"extract.0.regex": "no group"}, "extract.0.regex", "needs a group"),
        ({"extract.0.regex": "(?=x)(y)"}, "extract.0.regex", "look-around"),
        ({"extract.0.regex": ""}, "extract.0.regex", "give one of regex"),
        ({"extract.0.name": ""}, "extract.0.name", "is missing"),
        ({"extract.0.factor": "many"}, "extract.0.factor", "must be a number"),
        ({"extract.3.name": "time_s", "extract.3.regex": "(x)"}, "extract.3.name", "is given twice"),
        ({"placeholders.0.default": "many"}, "placeholders.0.default", "must be a whole number"),
        ({"placeholders.0.allowed": "200.."}, "placeholders.0.default", "at least 200"),
        ({"placeholders.0.name": "Hosts"}, "placeholders.0.name", "cannot be the name of a parameter"),
        ({"placeholders.0.allowed": "9..1"}, "placeholders.0.allowed", "9 is more than 1"),
        ({"placeholders.1.name": "idle"}, "placeholders.1.name", "changes nothing"),
        ({"environment": "MODE"}, "environment", "is not NAME=value"),
        ({"program": "/opt/solver 'open"}, "program", "cannot be read: No closing quotation"),
        ({"placeholders.0.name": ""}, "placeholders.0.name", "is missing"),
        ({"name": "water"}, "name", "a workload 'water' exists already"),
        ({"name": "new"}, "name", "a page of Rankwire"),
        ({"threads": "many"}, "threads", "must be a whole number"),
        ({"inputs.0.name": "my deck"}, "inputs.0.name", "cannot be the name of an input file"),
        ({"clusters": "lab: ["}, "clusters", "cannot be read"),
        ({"placeholders.0.allowed": "1\n2"}, "placeholders.0.allowed", "cannot be read"),
    ],
)
def test_errors_are_shown_at_their_field_with_the_input(maintainer, wrong, field, words):
    response = maintainer.post(reverse("program-new"), {**FORM, **wrong})
    assert response.status_code == 422
    page = html.fromstring(response.content)
    (element,) = page.xpath(f"//*[@id='err-{field.replace('.', '-')}']")
    assert words in element.text_content()
    assert f"#{element.get('id')}" in page.xpath("//*[@id='refused']//a/@href")
    assert page.xpath("//input[@name='title']/@value") == ["A solver"]
    assert page.xpath(f"//*[@name='{field}']/@aria-invalid") == ["true"]
    assert Program.latest("solver") is None


def test_all_errors_are_shown_at_once(maintainer):
    wrong = {
        "name": "Solver",
        "program": "/opt/solver {steps} {size}",
        "placeholders.0.default": "many",
        "extract.0.regex": "no group",
        "extract.1.name": "rate",
        "extract.1.regex": "",
        "deciding": "speed",
        "threads": "many",
    }
    page = html.fromstring(maintainer.post(reverse("program-new"), {**FORM, **wrong}).content)
    fields = {"name", "program", "placeholders.0.default", "extract.0.regex", "extract.1.regex", "deciding", "threads"}
    assert {field.get("name") for field in page.xpath("//*[@aria-invalid='true']")} == fields
    errors = [e.path for e in refusal({"name": "water", "program": ["a", "{x}"], "deciding": "b", "threads": "c"})]
    assert sorted(errors) == ["deciding", "name", "program", "threads"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"placeholders.0.name": "N", "placeholders.0.default": "many"},
        {"extract.0.name": "Time s"},
        {"placeholders.0.name": "", "placeholders.0.allowed": "9..1", "name": "Solver"},
    ],
)
def test_an_error_of_a_row_hides_no_undefined_parameter(maintainer, wrong):
    response = maintainer.post(reverse("program-new"), {**FORM, "program": "/opt/solver {steps} {size}", **wrong})
    page = html.fromstring(response.content)
    assert "{size} is not defined" in page.xpath("//*[@id='err-program']")[0].text_content()
    invalid = {field.get("name") for field in page.xpath("//*[@aria-invalid='true']")}
    assert {"program", *(name for name in wrong)} == invalid
    assert page.xpath("//*[@id='refused']")[0].text_content().split()[:2] == ["Not", "saved:"]


def refusal(data):
    with pytest.raises(InvalidSpec) as refused:
        read_definition(data)
    return refused.value.errors


def test_errors_under_advanced_open_it(maintainer):
    for wrong, opened in (({"threads": "many"}, 1), ({"program": "'"}, 0)):
        page = html.fromstring(maintainer.post(reverse("program-new"), {**FORM, **wrong}).content)
        assert len(page.xpath("//details[@class='advanced' and @open]")) == opened
        assert not page.xpath("//details//input[@name='success' or @name='failure']")


def test_input_files_can_be_uploaded(maintainer):
    deck = SimpleUploadedFile("in.deck", b"run {steps}\r\nend\n")
    form = {**FORM, "uploads": [deck, SimpleUploadedFile("notes", b"none")]}
    assert maintainer.post(reverse("program-new"), form).status_code == 302
    texts = {"control": "title = {steps} steps\n", "in.deck": "run {steps}\nend\n", "notes": "none"}
    assert Program.latest("solver").definition["inputs"] == texts


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


def sent(page):
    """Return what a browser sends of the form as it is."""
    (form,) = page.xpath("//form[@id='program']")
    areas = {area.get("name") for area in form.xpath(".//textarea")}
    # A browser drops the line feed after the tag, and lxml does not.
    return {name: text.removeprefix("\n") if name in areas else text for name, text in form.form_values()}


def test_an_unchanged_form_is_no_new_version(maintainer):
    """Numbers keep their notation: 5.0 and 5 are different definitions."""
    definition = {
        "name": "solver",
        "program": ["/opt/solver", "{a}", "{b}", "{c}"],
        "placeholders": {
            "a": {"default": 5.0, "minimum": 1.0, "maximum": 10, "choices": [5.0, 6]},
            "b": {"type": "text", "choices": [1, "x, y", 'say "so"'], "default": "1"},
            "c": {"type": "number", "title": "Factor", "unit": "s", "description": "Of time", "maximum": 1e3},
        },
        "inputs": {"deck": "\n a\n\n"},
        "decks": {"x": "/data/a=/b"},
        "environment": {"MODE": " fast "},
        "parts": [{"from_rank": 1, "program": ["./x", "a b"]}],
        "clusters": {"lab": {"binary": "/opt/s", "modules": []}},
        "extract": [
            {"name": "n", "csv_column": "N", "delimiter": ";", "file": "a.csv", "required": False, "at_most": 1e-6},
            {"name": "m", "json_pointer": "/m", "pick": "mean", "factor": 1e-6, "thousands": " "},
        ],
        "success": "Done",
    }
    Program.register(definition)
    address = reverse("program", args=["solver"])
    page = html.fromstring(maintainer.get(address).content)
    posted = sent(page)
    saved = maintainer.post(address, posted)
    assert saved.status_code == 302
    assert SUCCESS not in [message.level for message in get_messages(saved.wsgi_request)]
    assert Program.latest("solver").version == 1
    assert Program.latest("solver").definition == definition


@pytest.mark.parametrize(
    ("field", "text"),
    [("placeholders.0.allowed", f"{'.' * 30_000},"), ("program", "a" * 700_000), ("parts.0.program", "a" * 700_000)],
)
def test_long_texts_are_refused_in_little_time(maintainer, field, text):
    """Patterns and words took the square of their length: 4 MB some minutes, or days."""
    begun = time.process_time()
    assert maintainer.post(reverse("program-new"), {**FORM, field: text}).status_code == 422
    assert time.process_time() - begun < 4


def test_form_takes_the_largest_program(maintainer):
    definition = {
        "name": "large",
        "program": ["/opt/large", *(f"{{p{n}}}" for n in range(50))],
        "placeholders": {f"p{n}": {"default": n} for n in range(50)},
        "extract": [{"name": f"f{n}", "regex": f"f{n} (x)", "at_most": n} for n in range(100)],
        "inputs": {f"deck-{n}": f"run {n}\n" for n in range(50)},
    }
    Program.register(definition)
    address = reverse("program", args=["large"])
    posted = sent(html.fromstring(maintainer.get(address).content))
    assert maintainer.post(address, posted | {"title": "Large"}).status_code == 302
    assert Program.latest("large").definition == {**definition, "title": "Large"}


def test_yaml_fills_the_form_and_comes_back(maintainer):
    maintainer.post(reverse("program-new"), FORM)
    download = maintainer.get(reverse("program-yaml", args=["solver"]))
    assert "attachment" in download["Content-Disposition"]
    text = download.content.replace(b"name: solver", b"name: solver-2")
    filled = maintainer.post(reverse("program-new"), {"fill": "on", "yaml": SimpleUploadedFile("s.yaml", text)})
    page = html.fromstring(filled.content)
    posted = sent(page)
    assert maintainer.post(reverse("program-new"), posted).url == reverse("workload", args=["solver-2"])
    assert Program.latest("solver-2").definition == {**Program.latest("solver").definition, "name": "solver-2"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"name: [", "line 1: not valid YAML"),
        (b"name: s\nprogram: [a]\nshape: round\n", "shape: is not a known field"),
        (b"name: s\nprogram: [a, '{t}']\nplaceholders: {t: {type: text, default: 010}}\n", "write 8 or '010'"),
        (b"- a", "a program is a mapping"),
        (b"\xff", "is not UTF-8 text"),
    ],
)
def test_form_refuses_yaml_that_is_no_program(maintainer, content, words):
    upload = {**FORM, "fill": "on", "yaml": SimpleUploadedFile("s.yaml", content)}
    response = maintainer.post(reverse("program-new"), upload)
    assert response.status_code == 422
    page = html.fromstring(response.content)
    assert words in page.xpath("//*[@id='err-yaml']")[0].text_content()
    assert page.xpath("//input[@name='title']/@value") == ["A solver"]


OUTPUT = "start\ntime 0.5 s\ntime 0.25 s\nenergy 3\n"
"""Output of a run of the solver."""


def read(client, **more):
    response = client.post(reverse("program-output"), {**FORM, "sample": OUTPUT, **more})
    assert response.status_code == 200
    return response


def test_a_pattern_that_matches_nothing_is_refused_beside_other_errors(maintainer):
    wrong = {"title": "", "name": "not a name", "extract.0.regex": r"power (\S+)", "sample": OUTPUT}
    page = html.fromstring(maintainer.post(reverse("program-new"), {**FORM, **wrong}).content)
    errors = {
        path: page.xpath(f"//*[@id='err-{path}']")[0].text_content().split() for path in ("name", "extract-0-regex")
    }
    assert all(errors.values())


def test_output_shows_what_each_pattern_reads(maintainer):
    more = {"extract.1.name": "energy", "extract.1.regex": r"energy (\S+)", "extract.2.name": "power", "success": "end"}
    response = read(maintainer, **more, **{"extract.2.regex": r"power (\S+)"})
    figures = response.context["figures"]
    assert [(figure.value, figure.lines) for figure in figures] == [(0.25, [3]), (3.0, [4]), (None, [])]
    page = html.fromstring(response.content)
    assert [mark.text for mark in page.xpath("//mark")] == ["time 0.25 s\n", "energy 3"]
    assert (
        "is not in the output (its pattern matches no line)"
        in page.xpath("//*[@id='err-extract-2-regex']")[0].text_content()
    )
    beside_rows = [page.xpath(f"//*[@id='read-extract-{row}']")[0].text_content().split() for row in range(3)]
    assert [[word for word in words if word[0].isdigit()] for words in beside_rows] == [
        ["250ms,", "3"],
        ["3,", "4"],
        [],
    ]
    assert "no line of the standard output matches /end/" in response.context["refused"]
    assert response.context["met_checks"] == ()
    assert Program.latest("solver") is None


def test_output_that_passes_its_checks_is_named(maintainer):
    context = read(maintainer, success="^start", failure="FAILED").context
    assert (context["refused"], context["met_checks"]) == ("", ("a line matches /^start/", "no line matches /FAILED/"))
    assert read(maintainer).context["met_checks"] == ()
    assert read(maintainer, success="^start", sample_file="a.json").context["met_checks"] == ()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"extract.0.regex": "time ("}, "cannot be read"),
        ({"extract.0.regex": "time"}, "needs a group"),
        ({"extract.0.regex": r"time (\d+)"}, "is a part of"),
        ({"extract.0.regex": "(start)"}, "is no number"),
        ({"extract.0.unit": "ms"}, "set factor to 1000"),
        ({"extract.0.regex": "", "extract.0.json_pointer": "/a", "sample": "[" * 50_000}, "gives no number"),
    ],
)
def test_output_shows_the_error_at_the_pattern(maintainer, more, words):
    page = html.fromstring(read(maintainer, **more).content)
    assert words in page.xpath("//*[@id='err-extract-0-regex']")[0].text_content()


def test_output_reads_the_figures_of_a_written_file(maintainer):
    more = {"extract.1.name": "rate", "extract.1.json_pointer": "/rate", "extract.1.file": "*.json"}
    figures = read(maintainer, **more, sample='{"rate": 7}', sample_file="a.json").context["figures"]
    assert [figure.value for figure in figures] == [None, 7.0]
    assert figures[0].reading is None


@pytest.mark.parametrize("sample", ["a" * 100_000, "a\n" * 50_000, "[1" + "1" * 99_000 + "<stdout>: a"])
def test_output_is_read_in_bounded_time(maintainer, sample):
    patterns = {f"extract.{n}.name": f"f{n}" for n in range(50)} | {
        f"extract.{n}.regex": "(a?){200}(a*a*a*a*b)" for n in range(50)
    }
    begun = time.monotonic()
    read(maintainer, **patterns, sample=sample)
    assert time.monotonic() - begun < 10


def test_output_refuses_a_longer_text(maintainer):
    assert "at most 100000 are read" in read(maintainer, sample="a" * 100_001).context["refused"]


def test_submitters_may_run_but_not_register(page):
    assert page.get(reverse("program-new")).status_code == 403
    assert page.post(reverse("program-new"), FORM).status_code == 403
    assert page.post(reverse("program-output"), FORM).status_code == 403


def test_an_edited_experiment_keeps_its_version(maintainer):
    maintainer.post(reverse("program-new"), FORM)
    made = {"name": "study", "workload": "solver", "sweep_name": "steps", "sweep_values": "1, 2", "cluster": "testbed"}

    maintainer.post(reverse("program", args=["solver"]), {**FORM, "program": "/opt/solver2 {steps}"})
    post = QueryDict(mutable=True)
    post.update({**made, "parameters.version": "1"})
    assert draft_from_post(post)["parameters"] == {"version": 1}


@pytest.fixture
def finished(maintainer, session_directory):
    """A finished trial of the solver with a stored output."""
    maintainer.post(reverse("program-new"), FORM)
    factories.experiment(workload="solver", parameters={}, sweep={"steps": [1]}, repetitions=1)
    trial = factories.analysing()
    output = factories.stored_file(trial, content=b"time 3.5 s\n")
    trial.finish(TrialResult({"all": {"elapsed_s": 4.0, "solver.time_s": 3.5}}, {}, "good", artifacts=[output]))
    return trial


def test_a_finished_trial_names_the_checks_of_its_output(maintainer, finished):
    address = reverse("trial", args=[finished.pk])
    assert maintainer.get(address).context["output_checks"] == ()
    maintainer.post(reverse("program", args=["solver"]), {**FORM, "success": "time"})
    assert maintainer.get(address).context["output_checks"] == ("a line matches /time/",)
    assert "a line matches /time/" in maintainer.get(reverse("workload", args=["solver"])).text
    finished.artifacts.update(removed_at=timezone.now())
    assert maintainer.get(address).context["output_checks"] == ()


def test_a_definition_that_fails_finished_trials_is_saved_only_after_confirmation(maintainer, finished):
    address, changed = reverse("program", args=["solver"]), {**FORM, "extract.0.regex": r"seconds (\S+)"}

    refused = maintainer.post(address, changed)
    assert refused.status_code == 422
    assert reverse("trial", args=[finished.pk]) in unescape(refused.content.decode())
    assert Program.latest("solver").definition["extract"][0]["regex"] == r"time (\S+)"

    assert maintainer.post(address, {**changed, "anyway": "on"}).status_code == 302
    assert Program.latest("solver").definition["extract"][0]["regex"] == r"seconds (\S+)"


@pytest.mark.parametrize(("factor", "same"), [("", True), ("1000", False)])
def test_a_changed_unit_of_stored_values_is_saved_only_after_confirmation(maintainer, finished, factor, same):
    address, changed = reverse("program", args=["solver"]), {**FORM, "extract.0.unit": "ms", "extract.0.factor": factor}
    changed["extract.0.regex"] = r"time (\S+)."
    (unit,) = maintainer.post(address, changed).context["units"]
    assert (unit.before, unit.after, unit.values, unit.is_same_number) == ("s", "ms", 1, False)
    changed["extract.0.regex"] = FORM["extract.0.regex"]
    (unit,) = maintainer.post(address, changed).context["units"]
    assert unit.is_same_number == same
    assert Program.latest("solver").definition["extract"][0]["unit"] == "s"
    assert maintainer.post(address, {**changed, "anyway": "on"}).status_code == 302
    assert Program.latest("solver").definition["extract"][0]["unit"] == "ms"


def test_the_banner_of_held_trials_leads_to_the_program_and_to_its_newer_version(maintainer, submit):
    maintainer.post(reverse("program-new"), FORM)
    held = submit(workload="solver", parameters={}, sweep={"hosts": [1]}, repetitions=2)
    Experiment.objects.filter(pk=held.pk).update(hold=Hold.HELD)

    def links():
        page = html.fromstring(maintainer.get(held.get_absolute_url()).content)
        return page.xpath("//section[@aria-label='Trials on hold']//a/@href")

    edit = reverse("experiment-edit", args=[held.slug])
    assert links() == [reverse("workload", args=["solver"]), reverse("program", args=["solver"]), edit]
    maintainer.post(reverse("program", args=["solver"]), {**FORM, "program": "/opt/solver2 '--steps={steps}' control"})
    assert links()[-1] == f"{edit}?version=2"
    form = html.fromstring(maintainer.get(f"{edit}?version=2").content)
    assert form.xpath("//input[@name='parameters.version']/@value") == ["2"]


def test_the_banner_of_failed_trials_leads_to_the_program_and_to_its_newer_version(maintainer, person, submit):
    maintainer.post(reverse("program-new"), FORM)
    failed = submit(workload="solver", parameters={}, sweep={"hosts": [1]}, repetitions=2)
    failed.trials.update(state=State.FAILED, message="No such file: /opt/solver")

    def links():
        page = html.fromstring(maintainer.get(failed.get_absolute_url()).content)
        return page.xpath("//section[@aria-label='Reason of failure']//a[@class]/@href")

    edit, program = (
        reverse(name, args=[slug]) for name, slug in (("experiment-edit", failed.slug), ("program", "solver"))
    )
    assert links() == [program, edit]
    maintainer.post(program, {**FORM, "program": "/opt/solver2 '--steps={steps}' control"})
    assert links() == [program, f"{edit}?version=2"]
    person.memberships.update(role="submitter")
    assert links() == [f"{edit}?version=2"]
    person.memberships.update(role="viewer")
    assert links() == []


def test_comparisons_name_the_program_version_and_the_revision(maintainer, submit):
    maintainer.post(reverse("program-new"), FORM)
    of_program = submit(workload="solver", parameters={}, sweep={"hosts": [1]}, repetitions=2)
    assert versions(of_program) == "program version 1, revision 1"
    assert versions(submit(name="Water")) == "revision 1"
