"""The new-experiment form: its specification, and errors at their fields."""

import re
from dataclasses import replace
from hashlib import sha256

import pytest
import yaml
from django.urls import reverse
from lxml.html import fromstring

from dashboard.labels import SAME_WORK
from dashboard.pages import new
from dashboard.panels.new.draft import as_yaml, draft_from_post
from dashboard.panels.new.form import Form
from dashboard.panels.new.preview import program_notes
from experiments import workloads
from experiments.common.processors import usable_cores
from experiments.library import built_in
from experiments.models import Artifact, Cluster, Experiment, Program, Project, Trial
from experiments.specification import parse, parse_yaml
from experiments.specification.design import expand
from experiments.specification.launch_plan import plan_launch
from experiments.specification.yaml_lines import dump
from tests.dashboard.laboratory import specification
from tests.dashboard.panels.new.posts import posted
from tests.experiments import factories
from workers.preview import Estimate, capture_bytes, estimates

UNASKED = {"link.bandwidth": "1 Gbit/s"}
"""The form without link settings, as for real hosts."""


def submit(page, **changes):
    return page.post(reverse("new"), dict(posted(**changes).lists()))


def preview(page, **changes) -> str:
    response = page.post(reverse("new-preview"), dict(posted(**changes).lists()))
    assert response.status_code == 200
    return response.content.decode()


def test_the_preview_warns_of_one_repetition_alone(page):
    assert "One repetition does not show the scatter" in preview(page, repetitions="1")
    assert "repetition does not" not in preview(page, repetitions="2")


@pytest.mark.parametrize(("disturbed", "factor"), [("repeat", 5 / 3), ("keep", 1.0)])
def test_the_longest_time_has_a_repeat_of_every_measured_trial(page, disturbed, factor):
    fields = dict(posted(disturbed=disturbed, repetitions="2", warmups="1").lists())
    made = page.post(reverse("new-preview"), fields).context["preview"]
    assert made.most_seconds == pytest.approx(factor * made.seconds)


def test_the_preview_warns_of_more_ranks_than_cores(page):
    def shared(ranks):
        one_host = {"parameters.ranks_per_host": str(ranks), "sweep_values": ["1", "1500, 9000"]}
        return page.post(reverse("new-preview"), dict(posted(**one_host).lists())).context["preview"].shared_cores

    assert shared(usable_cores() + 1) == usable_cores()
    assert shared(usable_cores()) == 0


@pytest.mark.parametrize(("sizes", "noted"), [("1 KiB, 1 MiB", True), ("1 KiB, 1 MiB, 4 MiB", False)])
def test_the_preview_warns_of_too_few_message_sizes(page, sizes, noted):
    fields = dict(posted(workload="pingpong", sweep_name=["message_bytes"], sweep_values=[sizes]).lists())
    notes = page.post(reverse("new-preview"), fields).context["preview"].notes
    assert any("3 message sizes" in note for note in notes) == noted


@pytest.mark.parametrize(("most", "refused"), [(3, True), (300, False)])
def test_the_preview_names_a_quota_that_refuses_the_start(page, settings, most, refused):
    settings.QUOTA_QUEUED_TRIALS = most
    notes = page.post(reverse("new-preview"), dict(posted().lists())).context["preview"].notes
    assert any(f"at most {most} trials queued" in note for note in notes) == refused
    assert submit(page).status_code == (422 if refused else 302)


def test_the_longest_time_is_compared_with_the_budget(page):
    def made(budget):
        goal = {"goal.kind": "until", "goal.until": "answered", "goal.matters": "25 %", "goal.budget.time": budget}
        return page.post(reverse("new-preview"), dict(posted(**goal).lists())).context["preview"]

    ample = made("9 h")
    assert not ample.exceeds_budget
    between_s = (ample.seconds + ample.most_seconds) / 2
    assert made(f"{between_s:.3f} s").exceeds_budget


def test_a_rate_or_time_of_the_link_without_a_unit_is_questioned(page):
    assert "has no unit" not in preview(page)
    assert "Bandwidth: 100 has no unit and means 100 bit/s. Enter 100 Mbit/s" in preview(
        page, **{"link.bandwidth": "100"}
    )
    lossy = preview(page, **{"link.loss": "0.5"}).replace("\u202f", " ")
    assert "0.5 has no unit and means 50 %. Enter 0.5 % if" in lossy
    at_field = lossy.partition('id="err-link-loss"')
    assert at_field[0].endswith('<p class="err warn" ')
    assert "0.5 has no unit" in at_field[2].partition("</p>")[0]
    swept = {"sweep_name": ["hosts", "link.delay"], "sweep_values": ["1, 2", "0, 5"]}
    assert "5 has no unit and means 5 s. Enter 5 ms" in preview(page, **swept)


def test_a_loss_above_100_percent_without_a_unit_says_what_it_means(page):
    lossy = preview(page, **{"link.loss": "5"}).replace("\u202f", " ")
    error = lossy.partition('id="err-link-loss"')[2].partition("</p>")[0]
    assert "5 without a unit means 500 %. Enter 5 % if you mean that." in error


def _notes_of_programs(user, kind, **changes):
    spec = parse(specification(**changes))
    cluster = Cluster.objects.get(slug="testbed")
    cluster.kind = kind
    return program_notes(spec, expand(spec), cluster, user)


def _command(program):
    return {"workload": "command", "parameters": {"program": [program]}, "sweep": {"hosts": [1]}}


_OSU = {
    "workload": "osu",
    "parameters": {"directory": "/opt/absent"},
    "sweep": {"hosts": [2], "benchmark": ["bw", "latency"]},
}


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("local", _command("/bin/true"), []),
        ("local", _command("/opt/absent/solver"), ["/opt/absent/solver was"]),
        ("local", _OSU, ["/opt/absent/osu_bw and 1 other program were"]),
        ("ssh", _command("/opt/absent/solver"), []),
    ],
)
def test_programs_that_this_machine_lacks_are_noted_if_they_would_run_here(library, person, kind, changes, words):
    library.memberships.filter(user=person).update(role="maintainer")
    notes = _notes_of_programs(person, kind, **changes)
    assert [note.partition(" not found")[0] for note in notes] == words


def test_a_program_rebuilt_since_its_last_trial_is_named_before_the_start(library, person, tmp_path):
    program = tmp_path / "halo"
    program.write_bytes(b"first")
    library.memberships.filter(user=person).update(role="maintainer")
    changes = _command(str(program))
    factories.experiment(**changes)
    facts = {"program": {"path": str(program), "sha256": sha256(b"first").hexdigest()}}
    factories.finished(replace(factories.RESULT, environment=facts))
    assert _notes_of_programs(person, "testbed", **changes) == []
    program.write_bytes(b"rebuilt")
    assert [str(program) in note for note in _notes_of_programs(person, "testbed", **changes)] == [True]
    assert _notes_of_programs(person, "ssh", **changes) == []
    assert _notes_of_programs(person, "testbed", **_command("/bin/true")) == []
    stranger = factories.person("stranger", "maintainer", Project.objects.create(slug="other", name="Other"))
    assert _notes_of_programs(stranger, "testbed", **changes) == []


@pytest.mark.parametrize(("role", "links"), [("maintainer", 1), ("submitter", 0)])
def test_a_note_on_a_registered_program_leads_to_its_form(page, library, person, role, links, registered_programs):
    library.memberships.filter(user=person).update(role=role)
    Program.register({"name": "absent", "program": ["/opt/absent/solver"]}, author=person)
    answer = preview(page, workload="absent")
    assert "/opt/absent/solver was not found" in answer
    assert answer.count(f'href="{reverse("program", args=["absent"])}"') == links


def test_a_user_who_may_not_start_a_program_does_not_learn_whether_it_exists(person):
    assert _notes_of_programs(person, "local", **_command("/opt/absent/solver")) == []


def test_times_of_trials_with_other_links_are_a_rough_guess(submit, run):
    submit()
    run()
    rows = {}
    for link in ({}, {"bandwidth": "100 bit/s", "delay": "5 s"}):
        spec = parse(specification(sweep={"hosts": [3]}) | {"link": link})
        (rows[bool(link)],) = estimates(spec, expand(spec))
    assert [rows[other].of_other_links for other in (False, True)] == [False, True]
    assert rows[True].basis.startswith("rough guess from ")


@pytest.mark.parametrize(("hosts", "is_estimated"), [(2, True), (8, False)])
def test_times_scaled_from_other_numbers_of_hosts_are_no_estimate(page, submit, run, hosts, is_estimated):
    submit()
    run()
    fields = {"parameters.molecules": "216", "sweep_name": ["hosts"], "sweep_values": [str(hosts)]}
    made = page.post(reverse("new-preview"), dict(posted(**fields).lists())).context["preview"]
    assert made.is_estimated == is_estimated


def test_a_link_that_past_traffic_cannot_pass_within_the_time_limit_is_noted(page, submit, run):
    submit()
    run()
    sent = 6e6
    for trial in Trial.objects.filter(state="finished", configuration__hosts=2):
        trial.measurements.update_or_create(metric="wire_bytes", scope="all", defaults={"value": sent})
    written = specification(repetitions=1, warmups=0) | {"link": {"bandwidth": "100 bit/s"}, "time_limit_s": 60}
    spec = parse(written)
    plan = expand(spec)
    times = {
        point.hosts: time.elapsed_s for point, time in zip(plan.configurations, estimates(spec, plan), strict=True)
    }
    assert times[2] == pytest.approx(8 * sent / 2 / 100)
    assert times[1] < 60
    text = page.post(reverse("new-preview"), {**dict(posted().lists()), "source": "yaml", "yaml": as_yaml(written)})
    assert "will likely exceed the time limit of" in text.content.decode()


def test_errors_are_marked_at_once_and_named_by_their_labels(page):
    html = preview(page, name="", sweep_values=["1, zwei, 4", "1500, 9000"], **{"parameters.molecules": "many"})
    for element in ("err-name", "err-sweep-0", "err-parameters-molecules"):
        assert "</span>" in html.partition(f' id="{element}"')[2].partition("</p>")[0]
    assert all(f"<b>{label}</b>" in html for label in ("Name", "Sweep, Hosts", "Molecules"))
    assert "parameters.molecules</b>" not in html
    assert ">–</span>" in html.partition('id="count-0"')[2][:60]


@pytest.mark.parametrize(
    ("name", "written"), [("loss", "2, 3"), ("delay", "100, 200"), ("delay", "-2, -1"), ("bandwidth", "-5, -4")]
)
def test_swept_values_outside_their_limits_return_to_the_yaml_as_entered(page, name, written):
    swept = {"sweep_name": ["hosts", f"link.{name}"], "sweep_values": ["1, 2", written]}
    response = page.post(reverse("new-preview"), dict(posted(**swept).lists()))
    assert response.status_code == 200
    assert f"link.{name}: [{written}]" in response.context["yaml"]


@pytest.mark.parametrize("value", [100, -1, float("nan"), float("-inf")])
def test_any_number_of_a_link_is_written_as_yaml(value):
    for name in ("bandwidth", "delay", "loss", "queue"):
        assert f"\n  {name}: " in as_yaml({"link": {name: value}})


def test_it_turns_the_form_into_a_draft_without_defaults():
    assert draft_from_post(posted()) == {
        "name": "Hosts and MTU",
        "workload": "water",
        "repetitions": 2,
        "warmups": 1,
        "time_limit_s": "60 s",
        "parameters": {"molecules": 216, "ranks_per_host": 2},
        "sweep": {"hosts": "1..2", "link.mtu": "1500, 9000"},
        "link": {"bandwidth": "100 Mbit/s"},
    }


def test_it_writes_the_draft_as_yaml_that_means_the_same():
    draft = draft_from_post(posted())
    text = as_yaml(draft)
    assert "link.mtu: [1500, 9000]" in text
    assert text.index("workload:") < text.index("sweep:") < text.index("repetitions:")
    assert expand(parse(yaml.safe_load(text))) == expand(parse(draft))


def test_yaml_of_a_stored_specification_has_the_units_of_the_form():
    stored = parse(
        {
            "name": "x",
            "workload": "water",
            "sweep": {"hosts": [1, 2], "link.delay": ["1 ms", "2 ms"], "link.mtu": [1500, 9000]},
            "link": {"bandwidth": "100 Mbit/s", "loss": "1 %", "queue": "1 MiB"},
        }
    )
    text = as_yaml(stored.to_dict())
    for words in ("bandwidth: 100 Mbit/s", "loss: 1 %", "queue: 1 MiB", "link.delay: [1 ms, 2 ms]", "[1500, 9000]"):
        assert words in text
    assert expand(parse_yaml(text)) == expand(stored)


def test_default_time_limit_is_not_written():
    assert "time_limit_s" not in draft_from_post(posted(time_limit_s="600 s"))


def test_constants_of_a_workload_are_not_offered_for_a_sweep():
    form = Form({"name": "x", "workload": "command"}, {}, [])
    assert not {"program", "placeholders"} & dict(form.sweepable).keys()


def test_it_keeps_words_that_look_like_numbers_from_the_form_to_the_command():
    definition = {
        "program": ["program", "--build={build}", "{version}", "{steps}"],
        "placeholders": {"build": {"type": "text"}, "version": {"type": "text"}, "steps": {"default": 100}},
    }
    draft = {
        "name": "Versions",
        "workload": "command",
        "parameters": {**definition, "build": "007", "steps": 50},
        "sweep": {"version": "007, 1.10, 1..3"},
    }
    form = Form(draft)
    fields = {field.path: field.value for field in form.workload_fields}
    sweep = {"sweep_name": ["version"], "sweep_values": [form.sweep_rows[0].values]}
    again = draft_from_post(posted(name="Versions", workload="command", **fields | sweep))
    assert (again["parameters"], again["sweep"]) == ({**draft["parameters"], "ranks_per_host": 2}, draft["sweep"])
    assert form.sweep_rows[0].expanded == "007  1.10  1..3"
    for spec in (parse(again), parse_yaml(as_yaml(again))):
        plan = expand(spec)
        commands = [plan_launch(spec.workload, point.parameters).program for point in plan.configurations]
        assert commands == [("program", "--build=007", version, "50") for version in ("007", "1.10", "1..3")]


def test_it_writes_all_zipped_rows_as_one_group():
    assert draft_from_post(posted(combine="zip"))["zip"] == [["hosts", "link.mtu"]]


def test_it_keeps_groups_that_only_yaml_can_write():
    draft = {
        "workload": "water",
        "sweep": {"hosts": "1, 2", "steps": "5, 6", "link.mtu": "1500"},
        "zip": [["hosts", "steps"]],
    }
    form = Form(draft)
    assert form.combine == "groups"
    again = posted(
        combine="groups",
        zip_group=form.zip_groups,
        sweep_name=list(draft["sweep"]),
        sweep_values=list(draft["sweep"].values()),
    )
    assert draft_from_post(again)["zip"] == [["hosts", "steps"]]


def test_it_offers_what_can_decide_and_keeps_what_was_chosen():
    form = Form(draft_from_post(posted(deciding="water.ns_per_day")))
    choices = dict(form["deciding"].choices)
    assert {"energy_j", "energy_delay_js", "energy_per_result_j"} <= set(choices)
    assert (form["deciding"].value, form.has_study_options) == ("water.ns_per_day", True)
    assert {"", "water.loop_time_s", "elapsed_s", "cpu_s"} <= choices.keys()
    assert "packets" not in choices
    assert "packets" in dict(Form({"workload": "water", "deciding": "packets"})["deciding"].choices)
    assert parse_yaml(as_yaml(form.draft)).deciding == "water.ns_per_day"


def test_study_of_equal_work_on_each_rank_is_weak_in_form_and_setup(page):
    forms = {name: Form({"workload": name, "scaling": "strong"}) for name in ("ring", "water")}
    assert [label for _, label in forms["ring"]["scaling"].choices] == [SAME_WORK]
    assert forms["ring"]["grows_with_hosts"].choices == (("", "the work, with the ranks"),)
    assert dict(forms["water"]["scaling"].choices).keys() == {"strong", "weak", "throughput"}
    ring = factories.experiment(workload="ring", parameters={}, sweep={"hosts": [2, 4]})
    assert page.get(ring.get_absolute_url()).context["study_kind"] == SAME_WORK
    assert "same work on each rank" in page.get(reverse("workload", args=["ring"])).content.decode()
    assert "same work on each rank" not in page.get(reverse("workload", args=["water"])).content.decode()


def test_a_difference_without_a_unit_that_is_refused_names_its_meaning():
    form = Form({"workload": "water", "goal": {"matters": 25}}, {"goal.matters": ["must be from 0.1 % to 50 %"]})
    error, reading = form.goal["matters"].remarks
    assert error == "must be from 0.1 % to 50 %"
    assert "Enter 25 %" in reading


def test_it_forgets_what_decided_in_another_workload(page):
    def chosen(**changes) -> bool:
        response = page.post(reverse("new-fields"), dict(posted(**changes).lists()))
        return f'value="{changes["deciding"]}" selected' in response.content.decode()

    assert chosen(deciding="water.ns_per_day")
    assert not chosen(deciding="water.ns_per_day", workload="pingpong")
    assert chosen(deciding="cpu_s", workload="pingpong")


def test_it_keeps_rates_written_as_a_list():
    link = {"rates": ["1 Gbit/s", "100 Mbit/s"]}
    (field,) = [
        link_field
        for link_field in Form({"workload": "water", "link": link}).link_fields
        if link_field.path == "link.rates"
    ]
    again = draft_from_post(posted(**{field.path: field.value}))
    assert parse(again).link.rates == "1 Gbit/s; 100 Mbit/s"


def test_it_takes_an_empty_bandwidth_as_unlimited():
    assert draft_from_post(posted(**{"link.bandwidth": ""}))["link"] == {"bandwidth": None}


def test_it_says_that_nothing_was_captured():
    assert draft_from_post(posted(**{"capture.enabled": "off"}))["capture"] == {"enabled": False}


def test_it_counts_and_shows_the_exact_command_in_the_preview(page):
    text = preview(page)
    assert "Start 12 trials" in text
    assert "+ 4 warm-up" in text
    assert "mpirun" in text
    one_line = " ".join(
        text.replace("\\\n", " ").split()
    )  # line breaks of the command depend on the path of this checkout
    assert "lmp -in in.water" in one_line
    assert 'id="count-1" hx-swap-oob="true">2<' in text


def test_it_shows_what_slurm_is_asked_for_and_what_only_its_nodes_can_tell(page):
    settings = {"partition": "short", "account": "lab", "time_limit": "0:30:00", "scratch": "/scratch"}
    Cluster.objects.create(slug="farm", name="Farm", kind="slurm", settings=settings)
    text = preview(page, cluster="farm", sweep_name=["hosts"], sweep_values=["2"], **UNASKED)
    text = " ".join(text.replace("\\\n", " ").split())
    lines = ["--exclusive --nodes=2", "--partition=short", "--account=lab", "--time=0:30:00"]
    lines += ["/scratch/rankwire-RANDOM/ranks", "node1 to node2 are the nodes that Slurm allocates and names."]
    assert [words for words in lines if words not in text] == []


def test_it_expects_the_size_of_the_captures_from_past_ones(page, submit, run):
    submit()
    run()
    for trial in Trial.objects.filter(state="finished"):
        size = 1000 * trial.configuration.ranks
        Artifact.objects.create(
            trial=trial, kind="capture", name="capture.pcapng.zst", size_bytes=size, sha256="0" * 64
        )
    spec = parse(specification(repetitions=3, warmups=1, control=True))
    plan = expand(spec)
    assert capture_bytes(spec, plan, estimates(spec, plan)) == 4 * (1000 + 2000 + 4000)
    other = parse(
        specification(parameters={"molecules": 512, "steps": 50}, sweep={"hosts": [2]}, repetitions=1, warmups=0)
    )
    assert capture_bytes(other, expand(other), [Estimate(21.0, 0)]) == pytest.approx(20_000, rel=0.1)
    Artifact.objects.filter(trial__configuration__hosts__gt=1).delete()
    assert capture_bytes(other, expand(other), [Estimate(21.0, 0)]) is None


def test_it_shows_the_command_of_the_chosen_configuration(page):
    assert "-np 2" in preview(page, chosen="0")
    assert "-np 4" in preview(page, chosen="3")


def test_it_stores_the_experiment_and_opens_it_on_start(page):
    response = submit(page)
    experiment = Experiment.objects.get(published=False)
    assert response.url == experiment.get_absolute_url()
    assert experiment.trials.count() == 12
    assert experiment.owner.username == "okafor"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"sweep_values": ["1, 2", "15000"]}, "err-sweep-1"),
        ({"parameters.molecules": "many"}, "err-parameters-molecules"),
        ({"link.bandwidth": "7 parsecs"}, "err-link-bandwidth"),
        ({"repetitions": "1000", "sweep_values": ["1..12", "1500, 9000"]}, "err-sweep"),
        ({"cluster": "nowhere"}, "err-cluster"),
        ({"combine": "zip", "sweep_values": ["1, 2", "1500"]}, "err-zip"),
    ],
)
def test_it_marks_the_field_of_a_wrong_value_and_stores_nothing(page, changes, field):
    response = submit(page, **changes)
    assert response.status_code == 422
    for html in (preview(page, **changes), response.content.decode()):
        assert "</span>" in html.partition(f' id="{field}"')[2].partition("</p>")[0]
    assert not Experiment.objects.filter(published=False).exists()


def preview_of_yaml(page, text):
    return page.post(reverse("new-preview"), {**dict(posted().lists()), "source": "yaml", "yaml": text})


def test_numbers_of_the_link_without_a_unit_are_questioned_in_yaml_too(page):
    draft = draft_from_post(posted()) | {"link": {"delay": 4, "bandwidth": 20, "mtu": 9000}}
    with_units = preview_of_yaml(page, as_yaml(draft)).context
    assert not [note for note in with_units["preview"].notes if "has no unit" in note]
    bare = preview_of_yaml(page, dump(draft)).context
    assert [note.partition(" has no unit")[0] for note in bare["preview"].notes[:2]] == ["Bandwidth: 20", "Delay: 4"]
    warned = [field.path for field in bare["form"].link_fields if field.warnings]
    assert warned == ["link.bandwidth", "link.delay"]


def test_form_follows_the_edited_yaml(page):
    text = as_yaml(draft_from_post(posted()) | {"repetitions": 7, "tags": ["night"]})
    response = preview_of_yaml(page, text)
    assert response.context["preview"].trials == 4 * 7
    html = response.content.decode()
    assert 'name="repetitions" value="7"' in html
    assert 'value="night"' in html
    assert "<textarea" not in html  # the text being typed stays as it is


def test_edited_yaml_is_what_starts(page):
    text = as_yaml(draft_from_post(posted()) | {"workload": "pingpong", "parameters": {}, "sweep": {"hosts": [2]}})
    response = page.post(reverse("new"), {**dict(posted().lists()), "source": "yaml", "yaml": text})
    assert response.status_code == 302
    assert Experiment.objects.get(published=False).workload == "pingpong"


def test_form_edited_after_the_yaml_is_what_starts(page):
    response = page.post(reverse("new"), {**dict(posted().lists()), "source": "form", "yaml": "name: [typed before"})
    assert response.status_code == 302
    assert Experiment.objects.get(published=False).workload == "water"


def test_wrong_yaml_starts_nothing_and_stays_as_typed(page):
    text = "name: x\nworkload: water\nrepetitions: 0\n"
    response = page.post(reverse("new"), {**dict(posted().lists()), "source": "yaml", "yaml": text})
    assert response.status_code == 422
    assert not Experiment.objects.filter(published=False).exists()
    assert response.context["yaml"] == text
    assert [error.line for error in response.context["yaml_errors"]] == [3]


def test_wrong_yaml_names_its_line_and_keeps_the_form(page):
    response = preview_of_yaml(page, "name: x\nworkload: water\nrepetitions: 0\n")
    assert [error.line for error in response.context["yaml_errors"]] == [3]
    html = response.content.decode()
    assert 'id="steps"' not in html
    assert 'aria-disabled="true"' in html


def test_yaml_names_the_line_that_the_cluster_refuses(page):
    text = "name: x\nworkload: water\nsweep:\n  hosts: [2, 400]\n"
    preview = preview_of_yaml(page, text)
    started = page.post(reverse("new"), {**dict(posted().lists()), "source": "yaml", "yaml": text})
    assert started.status_code == 422
    for response in (preview, started):
        (error,) = response.context["yaml_errors"]
        assert error.path == "sweep.hosts"
        assert "not 400" in error.message
    assert preview.context["yaml_errors"][0].line == 4
    assert 'id="values-0"' not in preview.content.decode()  # the form keeps its own values


def test_an_empty_yaml_asks_for_a_text_or_a_file(page):
    (error,) = preview_of_yaml(page, "  ").context["yaml_errors"]
    assert "paste YAML or open a file" in error.message


@pytest.mark.parametrize("text", ["", "[", "just words", "- 1\n- 2", "name: &a x\nworkload: *a"])
def test_it_refuses_what_is_not_a_specification_in_words(page, text):
    response = preview_of_yaml(page, text)
    assert response.status_code == 200
    assert response.context["yaml_errors"]
    assert response.context["preview"] is None


def test_it_starts_a_clone_from_the_same_answers(page):
    submit(page)
    experiment = Experiment.objects.get(published=False)
    html = page.get(reverse("new") + f"?from={experiment.slug}").content.decode()
    assert 'value="100 Mbit/s"' in html
    assert 'value="1..2"' in html
    assert f'href="{experiment.get_absolute_url()}"' in html.partition("<h1")[0]  # the crumbs name the original


@pytest.mark.parametrize("file", built_in(), ids=lambda file: file.stem)
def test_it_opens_a_built_in_experiment_in_the_form_and_previews_it(page, file):
    response = page.get(reverse("new") + f"?library={file.stem}")
    preview = response.context["preview"]
    assert preview.command.startswith("mpirun")
    assert preview.seconds > 0


def test_it_gives_the_specification_as_a_file(page):
    submit(page)
    experiment = Experiment.objects.get(published=False)
    response = page.get(reverse("experiment-yaml", args=[experiment.slug]))
    assert expand(parse(yaml.safe_load(response.content))) == expand(experiment.spec)


def test_it_lets_a_viewer_start_nothing(page, person):
    person.memberships.update(role="viewer")
    response = submit(page)
    assert response.status_code == 422
    assert not Experiment.objects.filter(published=False).exists()


def test_it_does_not_parse_input_without_permission(page, person, monkeypatch):
    person.memberships.update(role="viewer")
    opened = page.get(reverse("new")).content.decode()
    monkeypatch.setattr(
        "dashboard.panels.new.draft.parse_yaml", lambda *_, **__: pytest.fail("read before the role was judged")
    )
    monkeypatch.setattr(new, "parse", lambda *_, **__: pytest.fail("read before the role was judged"))
    assert preview_of_yaml(page, "name: x\nworkload: command\n").context["yaml_errors"]
    assert submit(page).status_code == 422
    refused = page.post(reverse("new-preview"), dict(posted().lists())).content.decode()
    assert "you may not start" in refused
    assert page.post(reverse("new-fields"), dict(posted().lists())).status_code == 200
    for html in (refused, opened):
        (start,) = re.findall(r'<footer class="startbar".*?</footer>', html, re.DOTALL)
        assert "submitter or maintainer role" in start
        assert re.findall(r"<button[^>]*>", start) == [
            '<button class="btn btn-primary btn-lg ms-auto" aria-disabled="true">'
        ]


def test_it_estimates_a_size_that_never_ran_from_other_trials_of_the_workload(page, submit, run):
    submit()
    assert "rough guess, no past trial" in preview(page)
    run()
    answer = preview(page)  # of 2 and 4 ranks, as two of the three sizes that ran twice
    assert "rough guess, no past trial" not in answer


def test_it_disables_only_a_workload_whose_program_is_missing_and_names_the_package(page, monkeypatch, tmp_path):
    """A machine that has everything but HPC Challenge and BLAST's search."""
    for name in ("lmp", "NPopenmpi", "makeblastdb", "uftp", "uftpd", "setpriv"):
        program = tmp_path / name
        program.touch()
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    text = page.get(reverse("new")).content.decode()
    picks = {pick.split('value="')[1].split('"')[0]: pick for pick in text.split('<div class="pick"')[1:]}
    disabled = {slug for slug, pick in picks.items() if " disabled" in pick.split("<label")[0]}
    assert disabled == {"hpl", "hpcc", "data-staging", "imb", "osu"}
    assert "needs hpcc" in picks["hpl"]
    assert "needs ncbi-blast+" in picks["data-staging"]
    listed = page.get(reverse("workloads")).content.decode()
    assert "needs hpcc" in listed
    assert "needs ncbi-blast+" in listed


def test_it_counts_a_slow_link_in_before_there_are_trials(library):
    def expected_s(bandwidth):
        spec = parse({"name": "r", "workload": "concurrent-readers", "parameters": {"hosts": 2, "jobs": 60},
                      "link": {"bandwidth": bandwidth}})  # fmt: skip
        return estimates(spec, expand(spec))[0].elapsed_s

    sent = 60 * 30 * 40_000 * 8
    assert expected_s("2 Mbit/s") - expected_s("1 Gbit/s") == pytest.approx(sent / 2e6 - sent / 1e9)


def test_errors_of_yaml_follow_its_lines(page):
    text = "name: x\nworkload: water\nrepetitions: none\nunknown: 1\nsweep: {hosts: [two]}\n"
    lines = [error.line for error in preview_of_yaml(page, text).context["yaml_errors"]]
    assert len(lines) > 1
    assert lines == sorted(lines)


def test_each_program_is_described_before_it_is_chosen(page):
    """Folded: the words do not count on the first screen."""
    document = fromstring(page.get(reverse("new")).content.decode())
    listed = document.get_element_by_id("what-each-does")
    assert listed.tag == "details"
    assert listed.get("open") is None
    words = {item.findtext("b"): " ".join(item.text_content().split()) for item in listed.iter("li")}
    for workload in workloads.built_in():
        assert words[workload.title].startswith(f"{workload.title}: {workload.summary}")
    assert set(words) == set(document.xpath("//input[@name='workload']/following-sibling::label/b/text()"))
