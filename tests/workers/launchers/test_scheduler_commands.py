"""PBS, LSF, Flux and Grid Engine: exact commands and their answers."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from experiments.cluster_kinds.ssh import SshSettings
from tests.workers.launchers.commands import words
from workers import launchers
from workers.errors import ClusterUnavailable
from workers.hosts.programs import run_bounded
from workers.launchers.flux import parse_jobs
from workers.launchers.gridengine import parse_qstat as parse_grid_engine
from workers.launchers.lsf import parse_bjobs
from workers.launchers.pbs import parse_qstat as parse_pbs
from workers.launchers.schedulers.launcher import Allocation, SchedulerLauncher
from workers.launchers.schedulers.queue import Answer, JobState, clock_s
from workers.launchers.ssh_words import explain, why_unreached

ENVIRONMENT = {"parallel_environment": "whole"}
SUBMITTED = {
    "pbs": (
        {"queue": "long", "account": "lab", "slots_per_host": 32, "select": "mem=64gb", "time_limit": "4:00:00"},
        """qsub -N rankwire-1 -r n -j oe -o /dev/null -S /bin/sh -l select=4:ncpus=32:mem=64gb -l place=scatter:excl
           -q long -A lab -l walltime=4:00:00""",
    ),
    "lsf": (
        {"queue": "long", "project": "lab", "slots_per_host": 32, "time_limit": "4:00", "options": ["-U", "night"]},
        """bsub -J rankwire-1 -rn -o /dev/null -e /dev/null -cwd / -L /bin/sh -x -n 128 -R span[ptile=32]
           -q long -P lab -W 4:00 -U night""",
    ),
    "flux": (
        {"queue": "long", "bank": "lab", "requires": "host:n[1-9]", "time_limit": "4h"},
        """flux batch --job-name=rankwire-1 --nodes=4 --nslots=4 --exclusive --output=/dev/null --error=/dev/null --cwd=/
           --queue=long --bank=lab --requires=host:n[1-9] --time-limit=4h""",
    ),
    "gridengine": (
        {**ENVIRONMENT, "queue": "long", "project": "lab", "slots_per_host": 32, "time_limit": "4:00:00"},
        """qsub -terse -N rankwire-1 -S /bin/sh -r n -o /dev/null -e /dev/null -wd / -pe whole 128
           -q long -P lab -l h_rt=4:00:00""",
    ),
}


def launcher_of(kind: str, **settings: object) -> SchedulerLauncher:
    launcher = launchers.get(kind, {**(ENVIRONMENT if kind == "gridengine" else {}), **settings})
    assert isinstance(launcher, SchedulerLauncher)
    return launcher


def answering(launcher: SchedulerLauncher, answers: dict[str, Answer]) -> list[list[str]]:
    """Let the scheduler's commands say this; return the list that keeps what was run."""
    commands: list[list[str]] = []

    def run(argv: Sequence[str], text: str = "") -> Answer:
        commands.append(list(argv))
        return answers.get(argv[0], Answer(1, "", ""))

    launcher.queue.run = run
    return commands


@pytest.mark.parametrize("kind", SUBMITTED)
def test_it_asks_for_whole_hosts(kind: str) -> None:
    settings, command = SUBMITTED[kind]
    assert launchers.get(kind, settings).queue.submit_argv(4, "rankwire-1") == words(command)


BANNER = "*** Welcome to the laboratory ***\nLoading openmpi/4.1.4\n3 users, 12 jobs, load 0.7\n\n"
REPORTED = [
    ("slurm", "4711\n", "4711"),
    ("slurm", "4711;alps\n", "4711"),
    ("slurm", "Submitted batch job 4711\n", "4711"),
    ("pbs", "1234.head.lab\n", "1234.head.lab"),
    ("pbs", "1234\n", "1234"),
    ("lsf", "Job <1234> is submitted to queue <long>.\n", "1234"),
    ("lsf", "Job <1234> is submitted to default queue <normal>.\n", "1234"),
    ("flux", "f2SWsQ1fF\n", "f2SWsQ1fF"),
    ("flux", "ƒ2SWsQ1fF\n", "ƒ2SWsQ1fF"),
    ("gridengine", "1234\n", "1234"),
    ("gridengine", 'Your job 1234 ("rankwire-1") has been submitted\n', "1234"),
]


@pytest.mark.parametrize(("kind", "output", "job"), REPORTED)
@pytest.mark.parametrize("around", ["{}", BANNER + "{}", "{}\nlogged out\n", "\r\n  {}\r\n"])
def test_job_in_reads_the_number_among_other_text(kind: str, output: str, job: str, around: str) -> None:
    assert launcher_of(kind).queue.job_in(around.format(output)) == job


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        *(
            (kind, text)
            for kind in ("slurm", "pbs", "lsf", "flux", "gridengine")
            for text in ("", BANNER, "Request rejected.\n")
        ),
        ("slurm", "2026\n4711\n"),
        ("slurm", "job 4711 queued\n"),
        ("pbs", "login from 10.0.0.1\n10.0.0.1\n"),
        ("pbs", "12.head\n13.head\n"),
        ("lsf", "Job <1> is submitted to queue <a>.\nJob <2> is submitted to queue <a>.\n"),
        ("lsf", "Job <1> is submitted to nothing\n"),
        ("flux", "free\nf2SWsQ1fF\n"),
        ("gridengine", "7 8\n"),
    ],
)
def test_job_in_guesses_no_number(kind: str, output: str) -> None:
    assert launcher_of(kind).queue.job_in(output) is None


def test_cancel_returns_false_if_its_command_prints_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scancel").write_text("#!/bin/sh\nexec yes\n")
    (tmp_path / "scancel").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert launcher_of("slurm").queue.cancel("rankwire-1") is False


CANCELLED = [
    ("pbs", ["sh", "-c", 'qselect -N "$0" | xargs qdel', "rankwire-1"]),
    ("lsf", words("bkill -J rankwire-1 0")),
    ("flux", ["sh", "-c", 'flux cancel $(flux jobs --no-header --name="$0" --format={id.dec})', "rankwire-1"]),
    ("gridengine", words("qdel rankwire-1")),
    ("slurm", words("scancel --quiet --name=rankwire-1")),
]


@pytest.mark.parametrize(("kind", "command"), CANCELLED)
def test_cancel_gives_a_job_back_by_its_name(kind: str, command: list[str]) -> None:
    assert launcher_of(kind).queue.cancel_argv("rankwire-1") == command


@pytest.mark.parametrize(("kind", "command"), CANCELLED)
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(0, BANNER, ""), "*** Welcome to the laboratory ***"),
        (Answer(0, "", ""), "nothing"),
        (Answer(0, "7\n8\n", "a warning"), "“7 8 a warning”"),
        (Answer(None, "", ""), "no answer within"),
        (Answer(255, "", "Connection reset by peer"), "Connection reset by peer"),
    ],
)
def test_submit_leaves_no_job_whose_number_it_cannot_read(
    kind: str, command: list[str], answer: Answer, text: str
) -> None:
    launcher = launcher_of(kind)
    submit = launcher.queue.submit_argv(2, "rankwire-1")
    commands = answering(launcher, {submit[0]: answer} if submit[0] != "flux" else {"flux": answer})
    with pytest.raises(ClusterUnavailable) as caught:
        launcher.queue.submit(2, "script", "rankwire-1")
    assert text in str(caught.value)
    assert "Job rankwire-1 " in str(caught.value)
    assert commands == [submit, command]


def test_submit_cancels_nothing_that_the_scheduler_refused() -> None:
    launcher = launcher_of("lsf")
    commands = answering(launcher, {"bsub": Answer(255 - 1, "", "Bad queue name. Job not submitted.")})
    with pytest.raises(ClusterUnavailable, match=r"^LSF did not accept the job: Bad queue name. Job not submitted\.$"):
        launcher.queue.submit(2, "script", "rankwire-1")
    assert len(commands) == 1


def test_a_job_of_flux_has_a_number_that_every_terminal_can_write() -> None:
    launcher = launcher_of("flux")
    commands: list[list[str]] = []

    def run(argv: Sequence[str], text: str = "") -> Answer:
        commands.append(list(argv))
        return Answer(0, BANNER + ("ƒ2SWsQ1fF\n" if argv[1] == "batch" else "118489088\n"), "")

    launcher.queue.run = run
    assert launcher.queue.submit(2, "script", "rankwire-1") == "118489088"
    assert commands[1] == ["flux", "job", "id", "--to=dec", "ƒ2SWsQ1fF"]


# How the nodes of a job are reached


def allocation(launcher: SchedulerLauncher, scratch: str = "/scratch/rankwire-1") -> Allocation:
    return Allocation(launcher.queue, "12", ("n1", "n2", "n3"), Path(scratch))


def test_flux_reaches_the_shells_of_the_job() -> None:
    launcher = launcher_of("flux")
    assert launcher.connection(allocation(launcher), "n3")[:-2] == words("flux exec --jobid=12 --rank=2 python3 -I -S")


@pytest.mark.parametrize("kind", ["lsf", "gridengine"])
def test_other_nodes_are_reached_with_ssh(kind: str) -> None:
    launcher = launcher_of(kind)
    *ssh, command = launcher.connection(allocation(launcher), "n2")
    assert ssh == words("ssh -x -o BatchMode=yes n2")
    assert command.startswith("python3 -I -S -c ")


def test_logins_become_a_part_of_a_job_of_pbs() -> None:
    launcher = launcher_of("pbs")
    *ssh, command = launcher.connection(allocation(launcher), "n2")
    assert ssh == words("ssh -x -o BatchMode=yes n2")
    assert command.startswith("/opt/pbs/bin/pbs_attach -j 12 python3 -I -S -c ")


def test_the_login_host_reaches_the_nodes_of_a_job() -> None:
    launcher = launcher_of("lsf", login={"host": "gate"}, agent=["ssh", "-p", "2222"])
    *ssh, command = launcher.connection(allocation(launcher), "n2")
    assert (ssh[0], ssh[-1]) == ("ssh", "gate")
    assert command.startswith("exec ssh -p 2222 n2 'python3 -I -S -c ")


@pytest.mark.parametrize("kind", ["pbs", "lsf", "gridengine", "flux"])
@pytest.mark.parametrize(
    "command", [["n2", "echo it's $((1+1))"], ["-q", "-x", "-l", "mpi", "n2", "echo", "it\\'s", "$((1+1))"]]
)
def test_the_agent_runs_the_command_as_ssh_would(kind: str, command: list[str], tmp_path: Path) -> None:
    if "it's" in command[-1]:
        command = [command[0], 'echo "it\'s" $((1+1))']
    launcher = launcher_of(kind)
    programs = {
        "agent": launcher.remote_shell(allocation(launcher)),
        "ssh": '#!/bin/sh\necho "$@" | head -n 1 >>arguments\nwhile [ $# -gt 2 ]; do shift; done\nexec sh -c "$2"\n',
        "flux": '#!/bin/sh\necho "$@" | head -n 1 >>arguments\nwhile [ "$1" != sh ]; do shift; done\nexec "$@"\n',
        "attach": '#!/bin/sh\n[ "$1 $2" = "-j 12" ] || exit 3\nshift 2\nexec "$@"\n',
    }
    programs["agent"] = programs["agent"].replace("/opt/pbs/bin/pbs_attach", "attach")
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    answer = subprocess.run(
        [str(tmp_path / "agent"), *command], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (answer.stdout, answer.stderr) == ("it's 2\n", "")
    arguments = (tmp_path / "arguments").read_text()
    assert "--jobid=12 --rank=1 sh" in arguments if kind == "flux" else " n2 " in arguments


# What their schedulers say


def pbs(state: str, **more: object) -> str:
    return json.dumps({"timestamp": 1, "Jobs": {"12.head.lab": {"Job_Name": "rankwire", "job_state": state, **more}}})


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (pbs("Q", comment="Not Running: Insufficient amount of resource: ncpus"),
         JobState("12", "queued", "Not Running: Insufficient amount of resource: ncpus", "", "waiting")),
        (pbs("Q", comment="Can Never Run: Insufficient amount of resource: ncpus"),
         JobState("12", "queued", "Can Never Run: Insufficient amount of resource: ncpus", "", "waiting", hopeless=True)),
        (pbs("R", exec_host="n1/0*32+n2/0*32"), JobState("12", "running", "", "n1/0*32+n2/0*32", "running")),
        (pbs("E", exec_host="n1/0"), JobState("12", "exiting", "", "n1/0", "ending")),
        (pbs("F", Exit_status=0), JobState("12", "finished")),
        (pbs("F", Exit_status=271), JobState("12", "ended with status 271")),
        (f"{BANNER}{pbs('R', exec_host='n1/0')}\nlogged out\n", JobState("12", "running", "", "n1/0", "running")),
        ("qstat: cannot connect to server head.lab (errno=111)", None),
    ],
)  # fmt: skip
def test_answers_of_pbs_are_understood(text: str, state: JobState | None) -> None:
    assert parse_pbs("12", text) == state


def test_a_job_that_pbs_does_not_know_any_more_has_ended() -> None:
    launcher = launcher_of("pbs")
    commands = answering(launcher, {"qstat": Answer(153, "", "qstat: Unknown Job Id 12.head.lab")})
    assert launcher.queue.states(["12"]) == {"12": JobState("12", "finished")}
    assert commands == [words("qstat -x -f -F json 12")]
    answering(launcher, {"qstat": Answer(35, "", "qstat: 12.head.lab Job has finished, use -x or -H")})
    assert launcher.queue.states(["12.head.lab"]) == {"12.head.lab": JobState("12.head.lab", "finished")}
    answering(launcher, {"qstat": Answer(255, "", "The maintenance has finished.\nConnection refused")})
    assert launcher.queue.states(["12"]) == {}


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("12|PEND|-|New job is waiting for scheduling;|-", JobState("12", "PEND", "New job is waiting for scheduling", "", "waiting")),
        ("12|PSUSP|-|The job was suspended by the user while pending;|-",
         JobState("12", "PSUSP", "The job was suspended by the user while pending", "", "waiting")),
        ("12|RUN|32*n1:32*n2|-|-", JobState("12", "RUN", "", "32*n1:32*n2", "running")),
        ("12|SSUSP|n1:n2|-|-", JobState("12", "SSUSP", "", "n1:n2", "ending")),
        ("12|DONE|n1|-|-", JobState("12", "DONE", "", "n1")),
        ("12|EXIT|n1|-|TERM_RUNLIMIT: job killed after reaching LSF run time limit",
         JobState("12", "EXIT", "TERM_RUNLIMIT: job killed after reaching LSF run time limit", "n1")),
    ],
)  # fmt: skip
def test_answers_of_lsf_are_understood(line: str, state: JobState) -> None:
    assert parse_bjobs(f"{line}\n") == parse_bjobs(f"{BANNER}{line}\nlogged out\n") == {"12": state}


def test_one_question_serves_all_jobs_of_lsf() -> None:
    launcher = launcher_of("lsf")
    commands = answering(launcher, {"bjobs": Answer(0, "7|RUN|n1|-|-\n", "Job <12> is not found")})
    assert {job: state.phase for job, state in launcher.queue.states(["7", "12"]).items()} == {
        "7": "running",
        "12": "ended",
    }
    assert commands == [
        ["bjobs", "-a", "-noheader", "-o", "jobid stat exec_host pend_reason exit_reason delimiter='|'", "7", "12"]
    ]


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("12|SCHED|SCHED|", JobState("12", "SCHED", "", "", "waiting")),
        ("12|RUN|RUN|n[1-2]", JobState("12", "RUN", "", "n[1-2]", "running")),
        ("12|CLEANUP|CLEANUP|n[1-2]", JobState("12", "CLEANUP", "", "n[1-2]", "ending")),
        ("12|INACTIVE|COMPLETED|n[1-2]", JobState("12", "COMPLETED", "", "n[1-2]")),
        ("12|INACTIVE|TIMEOUT|n[1-2]", JobState("12", "TIMEOUT", "", "n[1-2]")),
    ],
)
def test_answers_of_flux_are_understood(line: str, state: JobState) -> None:
    assert parse_jobs(f"{line}\n") == parse_jobs(f"{BANNER}{line}\nlogged out\n") == {"12": state}


def listed(*rows: tuple[str, str, str]) -> str:
    parts = "".join(
        f"<job_list><JB_job_number>12</JB_job_number><state>{state}</state><queue_name>{queue}</queue_name>"
        f"<master>{master}</master></job_list>"
        for state, queue, master in rows
    )
    return f"<?xml version='1.0'?><job_info><queue_info>{parts}</queue_info></job_info>"


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (listed(("qw", "", "")), JobState("12", "qw", "", "", "waiting")),
        (listed(("hqw", "", "")), JobState("12", "hqw", "", "", "waiting")),
        (listed(("Eqw", "", "")), JobState("12", "Eqw", "it could not be started; see qstat -j", "", "waiting", hopeless=True)),
        (listed(("t", "a.q@n1", "MASTER")), JobState("12", "t", "", "n1", "waiting")),
        (listed(("r", "a.q@n2", "SLAVE"), ("r", "a.q@n1", "MASTER"), ("r", "a.q@n1", "SLAVE"), ("r", "a.q@n2", "SLAVE")),
         JobState("12", "r", "", "n1 n2", "running")),
        (listed(("dr", "a.q@n1", "MASTER")), JobState("12", "dr", "", "n1", "ending")),
    ],
)  # fmt: skip
def test_answers_of_grid_engine_are_understood(text: str, state: JobState) -> None:
    assert parse_grid_engine(text) == parse_grid_engine(f"{BANNER}{text}\nlogged out\n") == {"12": state}


ENDED_JOB = f"""\
{BANNER}failed       3 logins since yesterday
==============================================================
jobname      rankwire-1
jobnumber    12
taskid       undefined
failed       37  : qmaster enforced h_rt limit
exit_status  137
"""


def test_grid_engine_forgets_a_job_at_its_end_and_silence_is_none() -> None:
    launcher = launcher_of("gridengine")
    answering(
        launcher,
        {"qstat": Answer(0, listed(), ""), "qacct": Answer(0, ENDED_JOB, "")},
    )
    assert launcher.queue.states(["12"]) == {"12": JobState("12", "ended", "qmaster enforced h_rt limit")}
    answering(launcher, {"qstat": Answer(0, listed(), "")})
    assert launcher.queue.states(["12"]) == {"12": JobState("12", "ended")}
    answering(launcher, {"qstat": Answer(1, "", "error: unable to contact qmaster")})
    assert launcher.queue.states(["12"]) == {}


@pytest.mark.parametrize(
    ("kind", "reported", "nodes"),
    [
        ("pbs", "n1/0*32+n2/0*32", ("n1", "n2")),
        ("lsf", "32*n1:32*n2", ("n1", "n2")),
        ("lsf", "n1:n1:n2", ("n1", "n2")),
        ("flux", "n[08-10]", ("n08", "n09", "n10")),
        ("gridengine", "n2 n1", ("n2", "n1")),
        ("slurm", "rack[0-1]_b[08-09]-ib,c", ("rack0_b08-ib", "rack0_b09-ib", "rack1_b08-ib", "rack1_b09-ib", "c")),
    ],
)
def test_nodes_are_named_in_the_schedulers_order(kind: str, reported: str, nodes: tuple[str, ...]) -> None:
    queue = launcher_of(kind).queue
    assert queue.nodes(JobState("12", "running", "", reported, "running")) == nodes
    for odd in ("", "*** Welcome ***", "n[1-", "n1;reboot"):
        with pytest.raises(ClusterUnavailable, match="does not name the nodes of job 12"):
            queue.nodes(JobState("12", "running", "", odd, "running"))


@pytest.mark.parametrize(
    ("kind", "limit", "seconds"),
    [
        ("pbs", "4:00:00", 14400.0), ("pbs", "90", 90.0), ("lsf", "4:30", 16200.0), ("lsf", "90", 5400.0),
        ("flux", "90", 5400.0), ("flux", "1.5h", 5400.0), ("flux", "30s", 30.0), ("gridengine", "0:30:00", 1800.0),
    ],
)  # fmt: skip
def test_a_time_limit_is_read_as_its_scheduler_does(kind: str, limit: str, seconds: float) -> None:
    queue = launcher_of(kind, time_limit=limit).queue
    assert queue.left_s("12", held_s=10.0) == seconds - 10.0
    assert launcher_of(kind).queue.left_s("12", held_s=10.0) is None


def test_what_slurm_says_of_the_time_left_is_read() -> None:
    assert [clock_s(text) for text in ("1-02:03:04\n", "59:07", "0:09", "UNLIMITED", "INVALID", "")] == [
        93784.0, 3547.0, 9.0, None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize("lasting", [False, True])
def test_the_batch_script_is_a_program(lasting: bool, tmp_path: Path, eventually: Callable[..., object]) -> None:
    """It ends with the agent, unless another agent may follow."""
    script = launcher_of("lsf").script(tmp_path, lasting=lasting)
    host = subprocess.run(["hostname"], capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    agent = subprocess.Popen(["sleep", "60"])
    (tmp_path / f"agent-{host}.pid").write_text(f"{agent.pid}\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("hostname", "rm", "sleep"):  # which do not have the directory of the trial in their command line
        (programs / name).symlink_to(str(shutil.which(name)))
    batch = subprocess.Popen(["/bin/sh"], stdin=subprocess.PIPE, text=True, env={"PATH": str(programs)})
    assert batch.stdin is not None
    batch.stdin.write(script)
    batch.stdin.close()
    try:
        noted = tmp_path.with_name(f"{tmp_path.name}.job")
        # A shell creates the file before it writes to it.
        assert eventually(lambda: noted.exists() and noted.read_text()) == f"{batch.pid}\n"
        agent.kill()
        agent.wait()
        if lasting:
            with pytest.raises(subprocess.TimeoutExpired):
                batch.wait(2.5)
        else:
            assert batch.wait(20) == 0
            assert not noted.exists()
    finally:
        for process in (agent, batch):
            process.kill()
            process.wait()


def test_a_login_host_that_prints_without_end_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In 30 s it could print as many GB as the network carries."""
    (tmp_path / "squeue").write_text("#!/bin/sh\nexec yes\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    begun = time.monotonic()
    with pytest.raises(ClusterUnavailable, match=r"it prints more than 16.* MiB"):
        launcher_of("slurm").queue.run(["squeue"])
    assert time.monotonic() - begun < 10


def test_commands_have_input_output_status_and_a_time_limit() -> None:
    answer = run_bounded(["sh", "-c", "cat; echo odd >&2; exit 3"], "text", limit_s=10)
    assert (answer.stdout, answer.stderr, answer.returncode) == ("text", "odd\n", 3)
    begun = time.monotonic()
    for command in ("sleep 60", "exec >&- 2>&-; sleep 60"):
        with pytest.raises(subprocess.TimeoutExpired):
            run_bounded(["sh", "-c", command], limit_s=0.2)
    assert time.monotonic() - begun < 10


LONG = 1 << 20
HOSTILE = {
    "slurm": [
        "1|PENDING|" + "Grp" * LONG + "|", "1|PENDING|" + "Max" * LONG + "|", "1|RUNNING||" + "a," * LONG,
        "1|RUNNING||n[" + "1-9999," * LONG + "1]", "1|RUNNING||n[1-9999]" + "x" * LONG, "1|RUNNING||" + "[" * LONG,
    ],
    "pbs": [
        "[]", *(f'{{"timestamp": 1, "Jobs": {text}}}' for text in (
            "[]", "7", '{"1": []}', '{"1": {"job_state": []}}', "[" * LONG, "[" + "[]," * LONG + "1]",
            '{"1": {"job_state": "R", "exec_host": {}}}',
            '{"1": {"job_state": "R", "exec_host": "' + "+".join(map(str, range(20_000))) + '"}}',
        )),
    ],
    "lsf": ["1|PEND|-|" + "not eligible " * LONG + "|-", "Job <" * LONG, "1|RUN|" + ":".join(f"n{i}" for i in range(20_000)) + "|-|-"],
    "flux": ["1|RUN||" + "a," * LONG, "9" * LONG, "1|RUN||n[0-9999,0-9999]"],
    "gridengine": [
        "<?xml" * LONG, "<?xml?><job_info>" + "<a/>" * LONG + "</job_info>", "jobnumber 1\n" * LONG, "jobnumber 1" + "\n" * LONG,
        "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><job_info>&b;</job_info>",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in HOSTILE.items() for text in texts])
def test_answers_of_a_hostile_login_host_take_no_time(kind: str, text: str) -> None:
    queue = launcher_of(kind).queue
    begun_s = time.process_time()
    for answer in (Answer(0, text, ""), Answer(0, "", text)):
        queue.run = lambda argv, text="", answer=answer: answer
        for state in queue.states(["1"]).values():
            assert len(state.words()) <= 300
            with pytest.raises(ClusterUnavailable, match="does not name the nodes"):
                queue.nodes(state)
        queue.left_s("1", 1.0)
        queue.partition("1")
        assert queue.job_in(answer.output) is None
        assert queue.number_of("1") in ("1", None)
    assert time.process_time() - begun_s < 10


@pytest.mark.parametrize("digits", ["9" * 400, "9" * 5000, "²"])
def test_numbers_of_a_hostile_login_host_are_refused(digits: str) -> None:
    queue = launcher_of("slurm").queue
    queue.run = lambda argv, text="": Answer(0, f"1|{digits}\nPartition=a TotalNodes={digits} MaxNodes={digits}", "")
    assert (queue.left_s("1", 1.0), queue.partition("1")) == (None, {})
    assert clock_s(digits) is None


def test_complaints_of_a_login_host_are_shortened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "ssh"
    script.write_text("#!/bin/sh\nhead -c 1000000 /dev/zero | tr '\\0' x >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    queue = launcher_of("pbs", login={"host": "gate"}).queue
    with pytest.raises(ClusterUnavailable) as caught:
        queue.submit(1, "script", "rankwire-1")
    assert len(str(caught.value)) < 10_000


@pytest.mark.parametrize("unit", ["\n", "python", "python ", ": python"])
def test_long_complaints_of_a_host_are_explained_at_once(unit: str) -> None:
    """A mebibyte of empty lines was searched for hours, with the worker held."""
    begun = time.process_time()
    assert explain("n1", unit * (1 << 20)).startswith("The connection to host n1 ended")
    assert why_unreached("n1", 1.0, unit * (1 << 20), SshSettings(hosts=("n1",))).problem
    assert time.process_time() - begun < 5
