"""A registered program runs as a workload in its experiment's version."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from experiments import workloads
from experiments.errors import InvalidSpec
from experiments.models import Cluster, Program, State, Trial
from experiments.registered import forget
from experiments.specification import parse
from tests.workers.clusters.mpi_programs import sum_over_mpich
from workers import queue, tasks
from workers.hosts.programs import search_path

pytestmark = pytest.mark.usefixtures("registered_programs")

SOLVER: dict[str, Any] = {
    "name": "solver",
    "title": "A solver",
    "program": ["/bin/sh", "solve.sh", "{steps}"],
    "placeholders": {"steps": {"type": "integer", "minimum": 1, "default": 10}},
    "inputs": {
        "solve.sh": 'echo "rate = $((2 * $1)) per s, mode $MODE"; echo "time,1.5" > times.csv; echo hello > notes.log; '
        'mkdir -p out/run$1; echo "{\\"speed\\": $1}" > out/run$1/result.json; ln -s /etc/passwd out/link.log'
    },
    "environment": {"MODE": "fast-{steps}"},
    "extract": [
        {"name": "rate", "unit": "1/s", "direction": "higher", "regex": r"rate = (\d+)"},
        {"name": "speed", "json_pointer": "/speed", "file": "out/run*/result.json", "required": False},
    ],
    "success": "per s",
    "keep": ["*.log", "out/*.log"],
}


def registered(**changes: Any) -> Program:
    return queue.register_program({**SOLVER, **changes})


def test_it_runs_by_its_name(run_all: Callable[..., list[Trial]]) -> None:
    registered()
    one, two = run_all(workload="solver", sweep={"steps": [10, 20]}, parameters={"hosts": 1})
    assert (one.state, two.state) == (State.FINISHED, State.FINISHED), one.message + two.message
    assert [trial.measurements.get(metric="solver.rate").value for trial in (one, two)] == [20.0, 40.0]
    assert "mode fast-20" in two.artifacts.get(kind="stdout").file.read_text()
    assert two.artifacts.get(name="notes.log").file.read_text() == "hello\n"
    assert two.measurements.get(metric="solver.speed").value == 20.0
    stored = [artifact.name for artifact in two.artifacts.filter(kind="other")]
    assert stored == ["counters.json.zst", "notes.log", "out/run20/result.json", "ranks.json"]
    assert two.configuration.parameters["version"] == 1
    assert two.experiment.specification["parameters"]["version"] == 1


def test_files_may_have_the_time_of_day_in_their_names(run_all: Callable[..., list[Trial]]) -> None:
    writes = "echo rate: 7 > run.2026:11:22-16:43:01.yaml; mkdir -p n=4,m=2; echo 8 > n=4,m=2/a@b~; echo per s"
    rate = {"name": "rate", "regex": r"rate: (\d+)", "file": "run.*-*:*.yaml"}
    registered(inputs={"solve.sh": writes + "; : {steps}"}, extract=[rate], keep=["n=*,m=2/*", "run.*:01.yaml"])
    (trial,) = run_all(workload="solver", parameters={"hosts": 1})
    assert trial.state == State.FINISHED, trial.message
    assert trial.measurements.get(metric="solver.rate").value == 7.0
    stored = [artifact.name for artifact in trial.artifacts.filter(kind="other")]
    assert stored == ["counters.json.zst", "n=4,m=2/a@b~", "ranks.json", "run.2026:11:22-16:43:01.yaml"]


def test_what_is_run_begins_a_new_version_and_experiments_keep_theirs(run_all: Callable[..., list[Trial]]) -> None:
    registered()
    (trial,) = run_all(workload="solver", parameters={"hosts": 1})
    program = registered(environment={"MODE": "slow"})
    assert program.version == 2
    assert trial.experiment.add_repetitions(1) == 1, "the trials that there are still count"
    assert workloads.get("solver").bind({"version": 1}).environment(trial_parameters(trial), ranks=1) == {
        "MODE": "fast-10"
    }
    (again,) = run_all(workload="solver", parameters={"hosts": 1})
    assert "mode slow" in again.artifacts.get(kind="stdout").file.read_text()
    assert again.configuration.hash != trial.configuration.hash


def trial_parameters(trial: Trial) -> Any:
    from experiments.specification import design

    return design.workload_parameters("solver", trial.configuration.parameters)


def test_other_figures_are_read_out_of_what_was_run(run_all: Callable[..., list[Trial]]) -> None:
    registered()
    (trial,) = run_all(workload="solver", parameters={"hosts": 1})
    more = [*SOLVER["extract"], {"name": "double", "regex": r"rate = (\d+)", "factor": 2}]
    program = registered(extract=more)
    tasks.read_again(trial.experiment_id)
    assert program.version == 1
    assert trial.measurements.get(metric="solver.double").value == 40.0
    assert trial.experiment.trials.count() == 1


def test_the_deciding_figure_answers_for_it_and_is_no_new_version(db: None) -> None:
    registered()
    assert workloads.get("solver").decides == "solver.rate", "the first figure with a direction"
    program = registered(deciding="speed")
    assert (program.version, workloads.get("solver").decides) == (1, "solver.speed")


def test_patterns_that_refuse_what_was_run_take_it_out_of_the_statistics(run_all: Callable[..., list[Trial]]) -> None:
    registered()
    (trial,) = run_all(workload="solver", parameters={"hosts": 1})
    elapsed_s = trial.measurements.get(metric="elapsed_s").value
    registered(success="converged")
    tasks.read_again(trial.experiment_id)
    trial.refresh_from_db()
    assert trial.state == State.FAILED
    assert "no line of the standard output matches /converged/" in trial.message
    assert not trial.measurements.exists()
    registered(success="per s")
    tasks.read_again(trial.experiment_id)
    trial.refresh_from_db()
    assert trial.state == State.FINISHED
    values = dict(trial.measurements.values_list("metric", "value"))
    assert (values["elapsed_s"], values["solver.rate"]) == (elapsed_s, 20.0)


def test_decks_lie_on_the_cluster_and_are_filled(run_all: Callable[..., list[Trial]], open_path: Path) -> None:
    (open_path / "solve-20.sh").write_text(SOLVER["inputs"]["solve.sh"] + "; echo {extra}")
    extra = {"type": "integer", "default": 7}
    deck = str(open_path / "solve-{steps}.sh")
    changes: dict[str, Any] = {"inputs": {}, "decks": {"solve.sh": deck}}
    registered(**changes, placeholders={**SOLVER["placeholders"], "extra": extra})
    there, missing = run_all(workload="solver", sweep={"steps": [20, 10]}, parameters={"hosts": 1})
    assert missing.state == State.FAILED
    assert f"The input file {open_path}/solve-10.sh cannot be read on this machine: No such file" in missing.message
    assert there.state == State.FINISHED, there.message
    assert there.artifacts.get(name="solve.sh").file.read_text().endswith("echo 7")
    (open_path / "solve-20.sh").write_text("echo 'rate = 1 per s'")
    (unused,) = run_all(workload="solver", parameters={"hosts": 1, "steps": 20, "extra": 8})
    assert "extra changes nothing: neither command nor input files have {extra}" in unused.message
    registered(inputs={}, decks={"solve.sh": "/etc/shadow"})
    (stolen,) = run_all(workload="solver", parameters={"hosts": 1})
    assert stolen.state == State.FAILED
    assert "/etc/shadow cannot be read on this machine" in stolen.message


def test_another_cluster_has_its_own_binary(run_all: Callable[..., list[Trial]]) -> None:
    registered(program=["/nowhere/sh", "solve.sh", "{steps}"], clusters={"testbed": {"binary": "/bin/sh"}})
    (trial,) = run_all(workload="solver", parameters={"hosts": 1})
    assert trial.state == State.FINISHED, trial.message
    (elsewhere,) = run_all(workload="solver", parameters={"hosts": 1}, cluster="local")
    assert elsewhere.state == State.FAILED
    assert "The program /nowhere/sh is not installed" in elsewhere.message


def test_a_figure_beyond_its_limit_fails_the_trial(run_all: Callable[..., list[Trial]]) -> None:
    registered(extract=[{"name": "rate", "regex": r"rate = (\d+)", "at_most": 30}])
    within, beyond = run_all(workload="solver", parameters={"hosts": 1}, sweep={"steps": [15, 16]})
    assert (within.state, beyond.state) == (State.FINISHED, State.FAILED)
    assert beyond.message.startswith("rate is 32, and a good run has at most 30, in line 1")


def test_ranks_may_run_programs_of_their_own(run_all: Callable[..., list[Trial]]) -> None:
    answer = [{"name": "first", "regex": r"first (\d+)"}, {"name": "others", "regex": r"other (\d+)", "pick": "sum"}]
    # The pause: what a program prints and ends at once is lost now and then on a busy machine.
    other = {"from_rank": 2, "program": ["/bin/sh", "-c", "echo other {steps}; sleep 0.3"]}
    registered(program=["/bin/sh", "-c", "echo first 7; sleep 0.3"], parts=[other], extract=answer, success="")
    (trial,) = run_all(workload="solver", parameters={"hosts": 4}, certificate="skip")
    assert trial.state == State.FINISHED, trial.message
    values = dict(trial.measurements.filter(metric__startswith="solver.").values_list("metric", "value"))
    assert values == {"solver.first": 7.0, "solver.others": 20.0}


def shell_program(file: Path, *lines: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    file.chmod(0o755)
    return file


def test_its_own_path_and_container_reach_every_rank(run_all: Callable[..., list[Trial]], open_path: Path) -> None:
    """A confined trial, which allows no container, fails with a suggested fix."""
    image = open_path / "solver.sif"
    shell_program(open_path / "bin" / "apptainer", 'echo "image $2"', "shift 2", 'exec "$@"')
    shell_program(open_path / "bin" / "solve-it", 'echo "rate = $1 per s"')
    path = f"{open_path / 'bin'}:/usr/bin:/bin"
    registered(program=["solve-it", "{steps}"], container=str(image), environment={"PATH": path}, keep=[])
    request: dict[str, Any] = {
        "workload": "solver",
        "cluster": "local",
        "parameters": {"hosts": 1, "ranks_per_host": 2},
    }
    (confined,) = run_all(**request)
    assert confined.state == State.FAILED
    assert confined.message.startswith("Apptainer cannot run here: programs of trials on this machine are confined")
    Cluster.objects.filter(slug="local").update(settings={"confined": False})
    (trial,) = run_all(**request)
    assert trial.state == State.FINISHED, trial.message
    assert trial.artifacts.get(kind="stdout").file.read_text().count(f"image {image}") == 2
    assert trial.measurements.get(metric="solver.rate").value == 10.0


def test_all_workers_look_in_the_path_that_the_installation_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/home/somebody/bin")
    assert search_path().startswith("/home/somebody/bin:")
    monkeypatch.setenv("RANKWIRE_PATH", "/opt/lab/bin")
    assert search_path() == "/opt/lab/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.mark.parametrize("kind", ["ssh", "slurm"])
def test_it_runs_on_real_hosts(
    kind: str, run_all: Callable[..., list[Trial]], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A program of MPICH behind a binary of the cluster, on two hosts."""
    hosts = request.getfixturevalue("ssh_hosts" if kind == "ssh" else "slurm")
    Cluster.objects.create(slug=f"real-{kind}", name="Real", kind=kind, settings=hosts.settings())
    answer = [{"name": "sum", "regex": r"sum (\d+)", "at_least": 3, "at_most": 3}]
    (tmp_path / "a.deck").write_text("of {ranks} ranks")
    here = {"binary": str(sum_over_mpich(tmp_path)), "decks": {"in.deck": str(tmp_path / "a.deck")}}
    binary = {f"real-{kind}": here}
    registered(
        program=["sum"],
        placeholders={},
        inputs={},
        environment={},
        extract=answer,
        clusters=binary,
        success="rank 1 of 2",
    )
    (trial,) = run_all(workload="solver", cluster=f"real-{kind}", parameters={"hosts": 2})
    assert trial.state == State.FINISHED, trial.message
    assert trial.measurements.get(metric="solver.sum").value == 3.0
    assert trial.conditions["world"].startswith("2 ranks in one world, as requested (libmpich")
    assert trial.artifacts.get(name="in.deck").file.read_text() == "of 2 ranks"


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"name": "water"}, "name", "a workload 'water' exists already"),
        ({"name": "Not A Name"}, "name", "small letters"),
        ({"program": []}, "program", "names no program"),
        ({"placeholders": {"steps": {"default": 1}, "size": {"default": 1}}}, "placeholders", "'size' changes nothing"),
        ({"deciding": "pace"}, "deciding", "is none of the figures: rate"),
        ({"keep": ["../*"]}, "keep", "no pattern of names"),
        ({"decks": {"in.deck": "deck"}}, "decks", "no full path"),
        ({"decks": {"in.deck": "/data/../etc/x"}}, "decks", "no full path"),
        ({"decks": {"work": "/data/x"}}, "decks", "cannot be the name of an input file"),
        ({"decks": {"in.deck": "/data/{size}"}}, "program", "{size} is not defined"),
        ({"colour": "red"}, "colour", "not a known field"),
        ({"environment": {"OMP_NUM_THREADS": "2"}}, "environment", "cannot be a variable"),
        ({"placeholders": {"steps": 3}}, "placeholders.steps", "must be a mapping of names to values, not 3"),
        ({"parts": [3]}, "parts.0", "must be a mapping of names to values, not 3"),
    ],
)
def test_it_refuses_a_definition_at_its_field(db: None, changes: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        registered(**changes)
    assert [error.path for error in refused.value.errors] == [field]
    assert words in refused.value.errors[0].message


def test_it_refuses_a_version_that_there_is_not(db: None) -> None:
    registered()
    with pytest.raises(InvalidSpec, match="has no version 7, only 1"):
        parse({"name": "x", "workload": "solver", "parameters": {"version": 7}})


def test_the_command_registers_a_file_and_prints_it(
    db: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "solver.yaml"
    file.write_text(yaml.safe_dump(SOLVER))
    call_command("program", str(file))
    assert "solver: version 1; use it in specifications as workload: solver" in capsys.readouterr().out
    call_command("program", show="solver")
    assert yaml.safe_load(capsys.readouterr().out) == SOLVER
    file.write_text("name: solver\nprogram: [a]\nkeep: ['/etc/*']\n")
    with pytest.raises(CommandError, match=r"solver.yaml: line 3, keep: "):
        call_command("program", str(file))
    file.write_text("name: solver\nprogram: [a, '{v}']\nplaceholders:\n  v:\n    type: text\n    default: 4.10\n")
    with pytest.raises(CommandError, match=r"line 6, placeholders.v.default: .* write 4.1 or '4.10'"):
        call_command("program", str(file))
    file.write_text("name: solver\nprogram: [a]\nthreads: true\n")
    with pytest.raises(CommandError, match=r"line 3, threads: "):
        call_command("program", str(file))


def test_a_stored_program_that_cannot_be_read_any_more_hides_no_other(db: None) -> None:
    registered()
    Program.objects.create(slug="old", version=1, definition={"name": "old", "gone": 1})
    forget()
    assert workloads.find("solver") is not None
    assert workloads.find("old") is None


def test_a_change_that_is_older_than_the_latest_one_is_seen(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.registered.LOOK_EVERY_S", 0)
    first = registered()
    registered(name="later")
    assert workloads.get("solver").title == "A solver"
    between = first.changed_at + timedelta(microseconds=1)
    changed = {**first.definition, "title": "Another"}
    Program.objects.filter(pk=first.pk).update(definition=changed, changed_at=between)
    assert workloads.get("solver").title == "Another"
