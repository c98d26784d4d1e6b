"""Answers that no agent sends end the connection with a sentence."""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.workers.hosts.strange_host import hostile
from workers.agent import rpc
from workers.errors import ClusterUnavailable
from workers.hosts import remote_agent
from workers.hosts.answers import checked
from workers.hosts.environment import interface_facts, tcp_settings
from workers.hosts.remote_agent import RemoteAgent, start_argv
from workers.launchers import remote

WORK = Path("/scratch/work")
START: dict[str, Any] = {"environment": {}, "directory": WORK, "files": ()}


def outputs(agent: RemoteAgent) -> Any:
    return agent.output(["hostname"])


def wait(agent: RemoteAgent) -> Any:
    return agent.spawn(["true"], **START).wait(10)


def test_answers_of_our_own_agent_are_accepted(tmp_path: Path) -> None:
    agent = RemoteAgent("here", start_argv(sys.executable))
    try:
        facts = agent.connect(tmp_path / "scratch")
        assert facts["variables"]["PATH"] == os.environ["PATH"]
        machine = agent.machine(["python3", "-c", "1"], "mpirun", {"PATH": os.environ["PATH"]})
        assert {"cpu", "machine", "mpi", "program", "kernel"} <= {*machine}
        assert agent.processors()["allowed"] == sorted(os.sched_getaffinity(0))
        process = agent.spawn(["true"], environment={}, directory=tmp_path, files=[os.devnull] * 3)
        assert process.wait(10) == 0
        assert process.elapsed_s > 0
        for request in ("clock", "sample", "sweep", "stop", "signal"):
            agent.ask(request, pid=1 << 30, grace_s=0.0, signal=0)
        with pytest.raises(OSError, match="No such file"):
            agent.size(str(tmp_path / "missing"))
    finally:
        agent.close()


@pytest.mark.parametrize(
    ("fields", "ask"),
    [
        *(({"pid": value}, wait) for value in ("'7'", "-1", "None", "[]", "1e308", "10**400")),
        *(({"started_ns": value}, wait) for value in ("'1'", "-1", "10**30")),
        *(
            ({"found": value, "there": True}, lambda agent: agent.ask("find"))
            for value in ("7", "['a']", "'x' * 10**5")
        ),
        *(
            ({"time_s": value}, lambda agent: agent.ask("clock"))
            for value in ("1e999", "float('nan')", "'1'", "10**30")
        ),
        *(({"loaded": value}, lambda agent: agent.ask("mpi")) for value in ("None", "[7]", "{}", "['a'] * 10**5")),
        *(({"facts": value}, lambda agent: agent.machine((), "", {})) for value in ("{}", "[]", "{'cpu': 7}", "None")),
        *(
            ({"cores": value, "allowed": []}, RemoteAgent.processors)
            for value in ("7", "[[0, 0]]", "[[0, 0, [10**9]]]")
        ),
        *(({"error": value, "errno": 1}, outputs) for value in ("{}", "7", "'x' * 10**5")),
        ({"error": "'x'", "errno": "'x'"}, outputs),
        ({"left": "'1'", "killed": 0}, lambda agent: agent.ask("sweep")),
        ({"refusal": "7", "off": []}, lambda agent: agent.ask("offloads")),
        ({"frames": "-1"}, lambda agent: agent.ask("frames")),
    ],
)
def test_strange_answers_end_the_connection(fields: dict[str, Any], ask: Callable[[RemoteAgent], Any]) -> None:
    answer = ", ".join(f"{name}={value}" for name, value in fields.items())
    with (
        hostile(f"send(dict({{'answers': request['sequence']}}, {answer}))") as agent,
        pytest.raises(ClusterUnavailable, match="odd sends no answer to"),
    ):
        ask(agent)


@pytest.mark.parametrize(
    "end",
    [
        "{'ended': [7]}",
        "{'ended': 7}",
        "{'ended': 7, 'status': '0', 'started_ns': 1, 'ended_ns': 2}",
        "{'ended': 7, 'status': 0, 'started_ns': 2, 'ended_ns': 1}",
        "{'ended': 7, 'status': 0, 'started_ns': 0, 'ended_ns': 10**40}",
        "{'ended': 'x' * 10**6, 'status': 0, 'started_ns': 1, 'ended_ns': 2}",
    ],
)
def test_strange_ends_of_programs_end_the_connection(end: str) -> None:
    answers = "send({'answers': request['sequence'], 'pid': 7, 'started_ns': 1})"
    with (
        hostile(f"{answers}; send({end}) if request['do'] == 'spawn' else 0") as agent,
        pytest.raises(ClusterUnavailable, match="odd sends no answer to"),
    ):
        wait(agent)


def test_characters_that_cannot_be_stored_are_replaced() -> None:
    assert checked("mpi", {"answers": 1, "loaded": ["a\0\ud800"]}, "odd") == {"loaded": ["a\ufffd\ufffd"]}


@pytest.mark.parametrize("unit", [b"[],", b'{"":0},'])
def test_a_message_of_many_objects_is_no_message(unit: bytes, tmp_path: Path) -> None:
    """60 MiB of empty objects took 1.8 GB of memory."""
    assert received(b'{"a":[' + unit * rpc.MOST_CONTAINERS + b"0]}", tmp_path) is None


def received(text: bytes, directory: Path) -> tuple[rpc.Message, bytes] | None:
    message = directory / "message"
    message.write_bytes(struct.pack(">II", len(text), 0) + text + b"\n")
    with message.open("rb") as reading:
        stream = rpc.Stream(reading.fileno(), -1)
        return stream.receive()


def test_brackets_in_texts_are_no_objects(tmp_path: Path) -> None:
    names = ["{" * rpc.MOST_CONTAINERS, '"[\\', "[" * rpc.MOST_CONTAINERS + "\\"]
    assert received(json.dumps({"files": names}).encode(), tmp_path) == ({"files": names}, b"")
    for before in ('"\\\\"', '"\\""', '"\\\\\\""', '"a\\\\","b"'):
        text = f'{{"a":[{before},{"[]," * rpc.MOST_CONTAINERS}0]}}'.encode()
        assert json.loads(text)
        assert received(text, tmp_path) is None


@pytest.mark.parametrize("lengths", [(remote_agent.ANSWER_TEXT_BYTES + 1, 0), (2, remote_agent.CHUNK_BYTES + 1)])
def test_a_host_sends_no_longer_messages_than_the_worker_reads(lengths: tuple[int, int]) -> None:
    with (
        hostile(f"os.write(1, lengths.pack(*{lengths}) + b'{{}}' * 9)") as agent,
        pytest.raises(ClusterUnavailable, match="connection to odd ended"),
    ):
        agent.ask("clock")


def test_a_file_that_comes_slowly_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_agent, "READ_LIMIT_S", 0.3)
    sends = "__import__('time').sleep(0.1); send(dict(answer, size=1 << 40), bytes(request['limit']))"
    with hostile(sends) as agent, pytest.raises(ClusterUnavailable, match="did not send a file within"):
        list(agent.read("/scratch/stdout", most=1 << 40))


def test_odd_output_of_small_programs_is_left_out() -> None:
    answers = dict.fromkeys(("features", "speed", "coalescing", "driver", "queueing"), "")
    assert "mtu" not in interface_facts("eth0", {**answers, "link": "mtu"})
    assert "mtu" not in interface_facts("eth0", {**answers, "link": f"mtu {'9' * 5000}"})
    assert interface_facts("eth0", {**answers, "link": "2: eth0: mtu 1500 qdisc"})["mtu"] == 1500
    assert tcp_settings("no colon\n\n") == {}
    assert not remote._is_address("::::")
