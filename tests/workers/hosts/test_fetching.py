"""Files from hosts: plain names in the trial's directory only."""

from __future__ import annotations

import fcntl
import json
import math
import os
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.workers.hosts.strange_host import StrangeHost, hostile
from workers.agent import rpc
from workers.agent.remote import GREETING
from workers.errors import ClusterUnavailable, TrialFailed
from workers.hosts import fetching, processes, remote_agent
from workers.hosts.fetching import fetch
from workers.hosts.processes import ANSWER_LIMIT_BYTES
from workers.hosts.remote_agent import RemoteAgent, start_argv

WORK = Path("/scratch/work")


def test_it_writes_the_files_that_a_host_names(tmp_path: Path) -> None:
    fetch(StrangeHost({"rates.csv": [b"1,", b"2"]}), WORK, tmp_path / "work")
    assert (tmp_path / "work" / "rates.csv").read_bytes() == b"1,2"


@pytest.mark.parametrize(
    "name", ["../outside", "/var/rankwire-outside", "sub/file", "..", ".", "", "nul\0byte", "x" * 256, "\ud800", 7]
)
def test_it_fails_the_trial_whose_host_names_another_place(tmp_path: Path, name: object) -> None:
    target = tmp_path / "trial" / "work"
    host = StrangeHost({str(name): [b"stolen"]}, names=[name])
    with pytest.raises(TrialFailed, match="Host node7 sends a file under the name") as failure:
        fetch(host, WORK, target)
    # A host that is lost makes a new attempt; this one would do the same again.
    assert not isinstance(failure.value, ClusterUnavailable)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_it_takes_from_subdirectories_what_is_requested_and_nothing_odd(tmp_path: Path) -> None:
    odd = [
        "run1/rates.csv",
        "../rates.csv",
        "/etc/rates.csv",
        "run1/../../rates.csv",
        ".ssh/rates.csv",
        "run1/other",
        "run1/\ud800/rates.csv",
        7,
    ]
    host = StrangeHost({"rates.csv": [b"1"]}, names=odd, answers="nested")
    fetch(host, WORK, tmp_path / "trial" / "work", deep=["*/rates.csv", "*/*/rates.csv", "*.log"])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "trial/work/run1/rates.csv"]


def test_agent_lists_files_of_subdirectories(agent: RemoteAgent, tmp_path: Path) -> None:
    work = tmp_path / "there"
    (work / "run1" / "deep").mkdir(parents=True)
    (work / "run1" / "rates.csv").write_text("1,2")
    (work / "run1" / "deep" / "link.csv").symlink_to("/etc/passwd")
    (work / "run2").symlink_to(work / "run1")
    fetch(agent, work, tmp_path / "here", deep=["*/rates.csv", "*/*/*.csv"])
    assert [path for path in (tmp_path / "here").rglob("*") if path.is_file()] == [tmp_path / "here/run1/rates.csv"]
    assert (tmp_path / "here/run1/rates.csv").read_text() == "1,2"


def write_empty(directory: Path, names: Sequence[str]) -> None:
    directory.mkdir(parents=True)
    for name in names:
        (directory / name).touch()


def test_names_that_no_single_answer_can_have_are_listed(agent: RemoteAgent, tmp_path: Path) -> None:
    """An answer of 9 MB ended the connection, and so did one with brackets in names."""
    names = [f"{number:05}" + "\udcff[" * 120 for number in range(12_000)]
    write_empty(tmp_path / "there" / "sub", names)
    assert len(json.dumps(names)) > remote_agent.ANSWER_TEXT_BYTES
    assert fetching._names(agent, tmp_path / "there" / "sub", math.inf) == sorted(names)
    assert fetching._nested_names(agent, tmp_path / "there", ["sub/*"], math.inf) == []  # such names are not storable
    assert agent.alive()


def test_nested_names_come_in_several_answers(agent: RemoteAgent, tmp_path: Path) -> None:
    names = [f"rates{number:05}{'x' * 90}.csv" for number in range(45_000)]
    write_empty(tmp_path / "there" / "sub", names)
    pages = list(fetching._pages(agent, "nested", tmp_path / "there", math.inf, depth=8))
    assert len(pages) > 1
    assert [name for page in pages for name in page] == [f"sub/{name}" for name in names]


def test_more_files_than_a_run_may_write_fail_the_trial(
    agent: RemoteAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MOST_FILES", 300)
    write_empty(tmp_path / "there", [f"{number:05}" for number in range(301)])
    with pytest.raises(TrialFailed, match="names more files than the 300 that a run may write"):
        fetch(agent, tmp_path / "there", tmp_path / "here")
    assert agent.alive()


@pytest.mark.parametrize(
    "answer", ["files=7", "files=['a'], more=True", "files=['a'] * 101, more=True", "files={}, more=True", "more=True"]
)
def test_lists_without_end_or_form_fail_the_trial(answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "MOST_FILES", 100)
    with hostile(f"send(dict(answer, {answer}))") as agent, pytest.raises(TrialFailed, match="names more files than"):
        fetch(agent, WORK, tmp_path / "here")


@pytest.mark.parametrize("what", ["files", "read"])
def test_all_files_have_one_time_limit(what: str, tmp_path: Path) -> None:
    """Each file had an hour of its own."""
    files = "files=['a'], more=True" if what == "files" else "files=['a']"
    sends = f"""
    __import__('time').sleep(0.1)
    do = request['do']
    attachment = bytes(request.get('limit', 0))
    send(dict(answer, {files}) if do == 'files' else dict(answer, size=200 << 20), attachment)
    """.strip()
    begun = time.monotonic()
    with hostile(sends) as agent, pytest.raises(TrialFailed, match="did not send the files of the trial in time"):
        fetch(agent, WORK, tmp_path / "here", until_s=begun + 1)
    assert time.monotonic() - begun < 5


def test_fetch_does_not_follow_a_link_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("as it was")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "rates.csv").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="symbolic links"):
        fetch(StrangeHost({"rates.csv": [b"1"]}), WORK, tmp_path / "work")
    assert (tmp_path / "outside").read_text() == "as it was"


def test_fetch_takes_no_more_bytes_than_a_trial_may_have(tmp_path: Path) -> None:
    host = StrangeHost({"a.csv": [b"1" * 60], "b.csv": [b"2" * 60]})
    assert fetch(host, WORK, tmp_path / "all", room=120) == 0
    with pytest.raises(TrialFailed, match="more bytes than a trial may have"):
        fetch(host, WORK, tmp_path / "some", room=119)


def test_read_takes_no_more_than_was_requested() -> None:
    sends = "send(answer, bytes(request.get('limit', 0) + 1))"
    with hostile(sends) as agent, pytest.raises(ClusterUnavailable, match="more of a file than was requested"):
        list(agent.read("/scratch/stdout", most=100))


@pytest.mark.parametrize("size", ["-1", "1 << 60", "'9'", "None", "1.5"])
def test_size_is_a_number_of_bytes(size: str) -> None:
    with hostile(f"send(dict(answer, size={size}))") as agent, pytest.raises(ClusterUnavailable):
        agent.size("/scratch/stdout")


def test_answers_of_small_programs_are_bounded() -> None:
    ends = "send({'ended': 7, 'status': 0, 'started_ns': 1, 'ended_ns': 2}) if request['do'] == 'spawn' else 0"
    with hostile(f"send(answer, bytes(request.get('limit', 0))); {ends}") as agent:
        assert len(agent.output(["hostname"])) == ANSWER_LIMIT_BYTES


def test_wait_ends_at_its_limit_although_the_host_never_stops_sending() -> None:
    with hostile("send(answer); flood(60000) if request['do'] == 'spawn' else 0") as agent:
        process = agent.spawn(["true"], environment={}, directory=WORK, files=())
        begun = time.monotonic()
        assert process.wait(1.0) is None
        assert time.monotonic() - begun < 5


def test_reported_ends_of_programs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MOST_PROGRAMS", 100)
    ends = "[send({'ended': n, 'status': 0, 'started_ns': 1, 'ended_ns': 2}) for n in range(10, 200)]"
    with hostile(f"send(answer); {ends} if request['do'] == 'spawn' else 0") as agent:
        process = agent.spawn(["true"], environment={}, directory=WORK, files=())
        with pytest.raises(ClusterUnavailable):
            process.wait(10)


def test_a_login_text_without_end_loses_its_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_agent, "CONNECT_LIMIT_S", 1.0)
    reads = "import sys, threading; threading.Thread(target=sys.stdin.buffer.read, daemon=True).start()"
    agent = RemoteAgent("odd", [sys.executable, "-c", f"{reads}\nwhile True: print('welcome')"])
    begun = time.monotonic()
    try:
        with pytest.raises(ClusterUnavailable, match="did not answer"):
            agent.connect(tmp_path)
        assert time.monotonic() - begun < 10
    finally:
        agent.close()


def test_a_message_that_trickles_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "STALL_LIMIT_S", 0.5)
    reading, writing = os.pipe()
    stream = rpc.Stream(reading, writing)
    is_over = threading.Event()

    def trickle() -> None:
        os.write(writing, struct.pack(">II", 1000, 0))
        while not is_over.wait(0.1):
            os.write(writing, b"[")

    sender = threading.Thread(target=trickle)
    sender.start()
    try:
        begun = time.monotonic()
        assert stream.receive() is None
        assert time.monotonic() - begun < 3
    finally:
        is_over.set()
        sender.join()
        stream.close()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[RemoteAgent]:
    """The agent that travels to hosts, on this machine."""
    agent = RemoteAgent("here", start_argv(sys.executable))
    agent.connect(tmp_path / "scratch")
    yield agent
    agent.close()


def test_it_brings_plain_files_over_and_nothing_that_a_link_points_to(agent: RemoteAgent, tmp_path: Path) -> None:
    work = tmp_path / "scratch" / "work"
    (work / "sub").mkdir(parents=True)
    (work / "sub" / "below").write_text("below")
    (work / "rates.csv").write_text("1,2")
    (work / "link").symlink_to("/etc/passwd")
    os.mkfifo(work / "pipe")
    fetch(agent, work, tmp_path / "here")
    assert {path.name: path.read_text() for path in (tmp_path / "here").iterdir()} == {"rates.csv": "1,2"}


def test_it_brings_nothing_over_where_the_program_removed_its_directory(agent: RemoteAgent, tmp_path: Path) -> None:
    fetch(agent, tmp_path / "scratch" / "gone", tmp_path / "here")
    assert list((tmp_path / "here").iterdir()) == []


def test_a_pipe_in_the_place_of_an_output_does_not_hold_the_agent(agent: RemoteAgent, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "scratch" / "stdout")
    with pytest.raises(OSError, match="Not a plain file"):
        next(agent.read(str(tmp_path / "scratch" / "stdout"), most=1))
    assert agent.alive()


@pytest.mark.parametrize(
    ("lengths", "text"),
    [
        ((rpc.STREAM_LIMIT_BYTES + 1, 0), b""),
        ((2, rpc.STREAM_LIMIT_BYTES + 1), b"{}"),
        ((1, 0), b"{"),
        ((3, 0), b"[1]"),
        ((200_000, 0), b"[" * 200_000),
    ],
)
def test_messages_that_no_agent_sends_end_the_connection(lengths: tuple[int, int], text: bytes) -> None:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 1 << 20)
    stream = rpc.Stream(reading, writing)
    try:
        os.write(writing, struct.pack(">II", *lengths) + text + b"\n")
        assert stream.receive() is None
    finally:
        stream.close()


@pytest.mark.parametrize("before", ["", "os.write(1, GREETING); "])
def test_a_host_that_complains_without_end_loses_its_connection(tmp_path: Path, before: str) -> None:
    reads = "import os, sys, threading, time; threading.Thread(target=sys.stdin.buffer.read, daemon=True).start(); "
    flood = f"{reads}{before}[(os.write(2, bytes(65536)), time.sleep(0.005)) for _ in range(8192)]"
    agent = RemoteAgent("here", [sys.executable, "-c", flood.replace("GREETING", repr(GREETING))])
    begun = time.monotonic()
    try:
        with pytest.raises(ClusterUnavailable):
            agent.connect(tmp_path / "scratch")
        assert time.monotonic() - begun < 20
        assert not agent.alive()
        assert os.fstat(agent._stderr.fileno()).st_size < 4096 * 65536
    finally:
        agent.close()
