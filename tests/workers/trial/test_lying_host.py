"""A whole trial on a host with one false answer fails with a sentence."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.models import Cluster, State, Trial
from workers.trial import pipeline

LIAR = r"""
import json, os, sys
def read(count):
    data = b""
    while len(data) < count:
        data += os.read(0, count - len(data)) or sys.exit(1)
    return data
archive = os.memfd_create("agent")
os.write(archive, read(int(read(8))))
sys.path.insert(0, "/proc/self/fd/%d" % archive)
from workers.agent import remote, rpc
lie, last = json.load(open(sys.argv[1])), {}

receive, send = rpc.Stream.receive, rpc.Stream.send
def received(stream):
    request = receive(stream)
    last["do"] = request[0]["do"] if request else ""
    return request
def sent(stream, message, attachment=b""):
    if ("ended" if "ended" in message else last["do"]) != lie["request"]:
        return send(stream, message, attachment)
    *path, name = lie["path"]
    part = message
    for step in path:
        part = part[step]
    part[name] = "LIE"
    text = json.dumps(message).replace('"LIE"', lie["text"]).encode()
    rpc.write(stream.writing, stream._LENGTHS.pack(len(text), len(attachment)) + text + attachment + b"\n")
rpc.Stream.receive, rpc.Stream.send = received, sent
remote.start()
"""
DEEP = "[" * 900 + "]" * 900


@pytest.fixture
def run_lie(
    run_all: Callable[..., list[Trial]],
    script_workload: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Trial]:
    """Return the trial of an agent with one false answer, on this machine."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "liar.py").write_text(LIAR)
    command = f"{sys.executable} -I -S {tmp_path / 'liar.py'} {tmp_path / 'lie.json'}"
    (programs / "ssh").write_text(f"#!/bin/sh\nexec {command}\n")
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def run(request: str, path: list[Any], text: str) -> Trial:
        pipeline.POOL.close()
        (tmp_path / "lie.json").write_text(json.dumps({"request": request, "path": path, "text": text}))
        Cluster.objects.create(slug="liar", name="Liar", kind="ssh", settings={"hosts": ["localhost"]})
        (trial, *_) = run_all(workload="script", cluster="liar", capture={"enabled": False}, sweep={"hosts": [1]})
        return trial

    return run


@pytest.mark.parametrize(
    ("request_", "path", "text"),
    [
        ("hello", ["variables"], "[]"),
        ("hello", ["host"], '{"a": 1}'),
        ("spawn", ["pid"], '"7"'),
        ("ended", ["ended_ns"], "9" * 400),
        ("ended", ["status"], "null"),
        ("machine", ["facts"], DEEP),
        ("machine", ["facts", "cpu", "cores"], '"2"'),
        ("machine", ["facts", "machine", "firmware"], "7"),
        ("mpi", ["loaded"], "[NaN]"),
        ("find", ["found"], "[]"),
        ("sample", ["machine", "cpu_user_s"], "1e308"),
        ("sample", ["hosts", 0, "memory_bytes"], "9" * 30),
        ("sample", ["hosts"], "[]"),
        ("sweep", ["left"], "{}"),
        ("files", ["files"], '{"a": 1}'),
    ],
)
def test_trial_of_a_lying_host_fails_with_a_sentence(
    run_lie: Callable[..., Trial], request_: str, path: list[Any], text: str
) -> None:
    trial = run_lie(request_, path, text)
    assert trial.state in (State.FAILED, State.LOST), (trial.state, trial.traceback)
    assert 0 < len(trial.message) < 3000


def test_trial_of_an_honest_host_finishes(run_lie: Callable[..., Trial]) -> None:
    trial = run_lie("none", ["x"], "1")
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert trial.conditions["hosts"] == ["localhost"]
