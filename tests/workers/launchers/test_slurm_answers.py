"""Answers of Slurm: states, refusals, and silence, never a success."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from experiments.cluster_kinds.scheduler import SlurmSettings
from workers.errors import ClusterUnavailable
from workers.launchers.schedulers.queue import END_LIMIT_S, Answer, JobState
from workers.launchers.slurm import (
    SlurmQueue,
    parse_partition,
    parse_sacct,
    parse_scontrol,
    parse_squeue,
    refusal,
)

SILENCE = Answer(1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")

BROKEN = "The connection to n2 ended."


class Recorded(SlurmQueue):
    """Answers squeue with the given texts in turn, everything else with silence."""

    def __init__(self, *texts: str | Answer, **settings: object) -> None:
        super().__init__(SlurmSettings.model_validate(settings), "Slurm")
        self.texts = list(texts)
        self.calls: list[str] = []

    def run(self, argv: Sequence[str], text: str = "") -> Answer:
        program = argv[0]
        self.calls.append(program)
        if program != "squeue":
            return SILENCE
        answer = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        return answer if isinstance(answer, Answer) else Answer(0, answer, "")


def wait(queue: SlurmQueue) -> tuple[JobState, list[str]]:
    heard: list[str] = []
    return queue.wait_for_start("12", lambda what: heard.append(what) if what else None, lambda _s: None), heard


def test_a_pending_job_is_shown_as_pending_until_it_runs() -> None:
    state, heard = wait(Recorded("12|PENDING|Resources|\n", "12|CONFIGURING|None|n[1-4]\n", "12|RUNNING|None|n[1-4]\n"))
    assert (state.state, state.nodes) == ("RUNNING", "n[1-4]")
    assert heard == ["Slurm job 12: PENDING (Resources)", "Slurm job 12: CONFIGURING"]


def test_a_requeued_job_waits_again() -> None:
    state, heard = wait(Recorded("12|REQUEUED|None|\n", "12|PENDING|BeginTime|\n", "12|RUNNING|None|n1\n"))
    assert state.running
    assert heard == ["Slurm job 12: REQUEUED", "Slurm job 12: PENDING (BeginTime)"]


@pytest.mark.parametrize("end", ["NODE_FAIL", "BOOT_FAIL", "CANCELLED", "COMPLETED", "TIMEOUT", "OUT_OF_MEMORY"])
def test_a_job_that_ended_before_we_came_is_no_success(end: str) -> None:
    with pytest.raises(ClusterUnavailable, match=f"^Slurm job 12 cannot run: {end}"):
        wait(Recorded(f"12|{end}|None|n1\n"))


# Reasons as squeue(1) lists them.
@pytest.mark.parametrize(
    "reason",
    [
        "AssocGrpBillingMinutes",
        "AssocGrpCPUMinutesLimit",
        "AssocMaxCpuMinutesPerJobLimit",
        "AssocMaxNodePerJobLimit",
        "AssocMaxWallDurationPerJobLimit",
        "BadConstraints",
        "InvalidQOS",
        "PartitionTimeLimit",
        "QOSGrpCPUMinutesLimit",
        "QOSMaxCpuPerJobLimit",
        "QOSMinCpuNotSatisfied",
        "QOSUsageThreshold",
    ],
)
def test_a_quota_that_no_waiting_cures_ends_it_at_once_with_job_and_reason(reason: str) -> None:
    with pytest.raises(ClusterUnavailable, match=rf"^Slurm job 12 cannot run: PENDING \({reason}\)\.$"):
        wait(Recorded(f"12|PENDING|{reason}|\n"))


@pytest.mark.parametrize(
    "reason",
    [
        "AssocGrpCPURunMinutesLimit",
        "AssocGrpNodeLimit",
        "AssocMaxJobsLimit",
        "QOSGrpCpuLimit",
        "QOSMaxCpuPerUserLimit",
        "QOSMaxJobsPerUserLimit",
        "Resources",
    ],
)
def test_a_quota_that_frees_itself_is_waited_for_and_shown(reason: str) -> None:
    state, heard = wait(Recorded(f"12|PENDING|{reason}|\n", "12|RUNNING|None|n1\n"))
    assert state.running
    assert heard == [f"Slurm job 12: PENDING ({reason})"]


def test_silence_is_unknown_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 20))
    monkeypatch.setattr("workers.launchers.schedulers.queue.time.monotonic", lambda: float(next(clock)))
    heard: list[str] = []
    with pytest.raises(ClusterUnavailable, match="no answer about job 12: its state is unknown"):
        Recorded(SILENCE).wait_for_start("12", heard.append, lambda _s: None)
    assert "Slurm job 12: unknown, Slurm gives no answer" in heard


def test_it_waits_no_longer_than_the_cluster_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 20))
    monkeypatch.setattr("workers.launchers.schedulers.queue.time.monotonic", lambda: float(next(clock)))
    with pytest.raises(ClusterUnavailable, match=r"did not start within 100\ss"):
        wait(Recorded("12|PENDING|Priority|\n", pending_limit_s=100))


@pytest.mark.parametrize(
    ("squeue", "sentence"),
    [
        ("12|NODE_FAIL|None|n[1-4]\n", "Slurm job 12 on n[1-4] ended: NODE_FAIL."),
        ("12|TIMEOUT|TimeLimit|n1\n", "Slurm job 12 on n1 ended: TIMEOUT (TimeLimit)."),
        ("12|PENDING|BeginTime|\n", "Slurm put job 12 back into the queue (PENDING (BeginTime)): what ran is lost."),
        ("", "Slurm gives no answer about job 12: its state is unknown."),
    ],
)
def test_the_end_of_a_running_job_is_reported_by_slurm(squeue: str, sentence: str) -> None:
    assert Recorded(squeue).why_ended("12", BROKEN) == sentence


@pytest.mark.parametrize("late", ["RUNNING", "COMPLETING"])
def test_a_job_that_slurm_has_not_seen_ending_yet_is_asked_about_again(late: str) -> None:
    queue = Recorded(f"12|{late}|None|n[1-2]\n", f"12|{late}|None|n[1-2]\n", "12|NODE_FAIL|None|n[1-2]\n")
    pauses: list[float] = []
    assert queue.why_ended("12", BROKEN, pauses.append) == "Slurm job 12 on n[1-2] ended: NODE_FAIL."
    assert len(pauses) == 2


def test_a_job_that_completed_was_not_the_reason() -> None:
    sentence = Recorded("12|COMPLETING|None|n[1-2]\n", "12|COMPLETED|None|n[1-2]\n").why_ended(
        "12", BROKEN, lambda _s: None
    )
    assert sentence == f"{BROKEN} State of Slurm job 12 on n[1-2]: COMPLETED."


@pytest.mark.parametrize("state", ["RUNNING", "COMPLETING"])
def test_a_job_that_continues_did_not_end_the_connection_did(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("workers.launchers.schedulers.queue.time.monotonic", lambda: now[0])

    def pause(pause_s: float) -> None:
        now[0] += pause_s

    sentence = Recorded(f"12|{state}|None|n[1-2]\n").why_ended("12", BROKEN, pause)
    assert sentence == f"{BROKEN} State of Slurm job 12 on n[1-2]: {state}."
    assert 5 < now[0] <= END_LIMIT_S


def test_one_question_serves_all_jobs() -> None:
    queue = Recorded("7|RUNNING|None|n1\n12|PENDING|Priority|\n")
    assert {job: state.state for job, state in queue.states(["12", "7"]).items()} == {"7": "RUNNING", "12": "PENDING"}
    assert queue.calls == ["squeue"]


def test_accounting_and_controller_are_understood() -> None:
    assert parse_sacct("12|CANCELLED by 0|n[1-2]\n")["12"] == JobState("12", "CANCELLED", "", "n[1-2]")
    line = "JobId=12 JobName=rankwire JobState=FAILED Reason=NonZeroExitCode Dependency=(null) NodeList=n1 BatchHost=n1"
    assert parse_scontrol(line)["12"] == JobState("12", "FAILED", "NonZeroExitCode", "n1")
    assert parse_squeue("slurm_load_jobs error: Invalid job id specified\n") == {}


@pytest.mark.parametrize(
    ("complaint", "reason"),
    [
        (
            "sbatch: error: invalid partition specified: gpu\n"
            "sbatch: error: Batch job submission failed: Invalid partition name specified",
            "Invalid partition name specified (gpu)",
        ),
        (
            "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's "
            "size and/or time limits)",
            "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits) (lab)",
        ),
        (
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
            "Invalid account or account/partition combination specified (gpu) (lab)",
        ),
    ],
)
def test_a_refusal_is_given_in_slurms_words(complaint: str, reason: str) -> None:
    assert refusal(Answer(1, "", complaint), SlurmSettings(partition="gpu", account="lab")) == reason


PARTITION = "PartitionName=short AllowGroups=ALL Default=YES MaxNodes={most} MinNodes=0 TotalCPUs=6 TotalNodes={total} TRES=cpu=6,node=3"


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        (PARTITION.format(most="UNLIMITED", total=3), 3),
        (PARTITION.format(most=2, total=3), 2),
        (PARTITION.format(most=4, total=3), 3),
        ("", None),
        ("slurm_load_partitions error: Unable to contact slurm controller", None),
    ],
)
def test_a_job_can_have_as_many_hosts_as_its_partition_has_and_lets_it(text: str, hosts: int | None) -> None:
    assert parse_partition(text) == hosts


def test_of_a_partition_that_slurm_is_silent_about_nothing_is_known() -> None:
    assert Recorded("").partition("12") == {}
    assert Recorded("", partition="short").partition("12") == {}


def test_of_several_partitions_slurm_is_asked_which_one_the_job_has() -> None:
    class Running(SlurmQueue):
        def run(self, argv: Sequence[str], text: str = "") -> Answer:
            job = argv[-2:] == ["job", "12"]
            named = "Partition=long" if job else PARTITION.format(most=2, total=3) if argv[-1] == "long" else ""
            return Answer(0, named, "")

    assert Running(SlurmSettings(partition="compute,long"), "Slurm").partition("12") == {"name": "long", "hosts": 2}


@pytest.mark.parametrize(
    ("complaint", "ended"),
    [
        ("slurm_load_jobs error: Invalid job id specified", True),
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", False),
        ("slurm_load_jobs error: Zero Bytes were transmitted or received", False),
    ],
)
def test_a_job_that_slurm_has_forgotten_has_ended_and_one_it_is_silent_about_may_not_have(
    complaint: str, ended: bool
) -> None:
    class Complaining(Recorded):
        def run(self, argv: Sequence[str], text: str = "") -> Answer:
            return Answer(1, "", complaint)

    assert Complaining("").has_ended("12", lambda _s: None) is ended
