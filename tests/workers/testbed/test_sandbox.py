"""The sandbox, attacked by programs inside.

Of an agent that root runs, and of one that an ordinary user runs.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

import workers
from tests.workers.testbed import sandbox_scene
from workers.agent import sandbox

ROOT = Path(workers.__file__).parent.parent
NOBODY = 65534
DEVICES = Path("/dev")
KEPT = {*(name.partition("/")[0] for name in sandbox.KEPT_DEVICES), *sandbox.DEVICE_LINKS, "pts", "shm"}
UNSHARE = ("unshare", "--net", "--mount", "--uts", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc")
ORDINARY = (UNSHARE[0], "--user", "--map-root-user", *UNSHARE[1:])
BECOME = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all")


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """Of every user; not below /tmp, which sandboxes hide."""
    with tempfile.TemporaryDirectory(dir="/opt" if os.access("/opt", os.W_OK) else None) as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture(params=["root", "ordinary"])
def attacked(request: pytest.FixtureRequest, open_directory: Path) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Plays an attack in a copy of the code and returns what it reached."""
    is_root = os.geteuid() == 0
    if request.param == "root" and not is_root:
        pytest.skip("only root has the rights that this agent gives up")
    for package in ("experiments", "experiments/common", "workers", "workers/agent"):
        (open_directory / package).mkdir()
        for file in (ROOT / package).glob("*.py"):
            if package != "experiments" or file.name == "__init__.py":
                shutil.copy(file, open_directory / package)
    shutil.copy(sandbox_scene.__file__, open_directory)
    prefix = UNSHARE if request.param == "root" else (*(BECOME if is_root else ()), *ORDINARY)
    terminals = os.openpty()
    terminal = os.ttyname(terminals[1])
    if is_root and request.param == "ordinary":
        os.chown(terminal, NOBODY, NOBODY)
    scene = open_directory / "scene"
    scene.mkdir()
    scene.chmod(0o777)

    def play(attack: str) -> dict[str, Any]:
        argv = [*prefix, "/usr/bin/python3", "-S", str(open_directory / "sandbox_scene.py"), attack, str(scene)]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(open_directory), sandbox_scene.SECRET: "1"}
        environment |= {"TERMINAL": terminal, "DEVICE": str(device)}
        done = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    device = DEVICES / f"rankwire-{os.getpid()}"
    vanished = DEVICES / f"tty-rankwire-{os.getpid()}"
    if is_root:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.chmod(0o666)
        vanished.symlink_to("nowhere")
    try:
        yield play
    finally:
        for path in (device, vanished):
            path.unlink(missing_ok=True)
    for end in terminals:
        os.close(end)


def test_program_cannot_touch_a_process_that_has_not_become_its_program(
    attacked: Callable[[str], dict[str, Any]],
) -> None:
    """Until execve it has the memory and the sockets of the agent."""
    scene = attacked("watch")
    assert scene["result"].pop("seen") > 0
    assert set(scene["result"].values()) == {0}, scene["result"]
    assert {outcome for outcome, _ in scene["outcomes"]} == {"started"}


def test_agent_waits_for_no_program_that_another_one_stopped(attacked: Callable[[str], dict[str, Any]]) -> None:
    scene = attacked("stop")
    assert {outcome for outcome, _ in scene["outcomes"]} <= {"started", errno.ETIMEDOUT}
    assert errno.ETIMEDOUT in {outcome for outcome, _ in scene["outcomes"]}
    assert max(took_s for _, took_s in scene["outcomes"]) < 20
    assert scene["alive"]


def test_program_inherits_its_streams_alone_and_sees_its_own_trial_alone(
    attacked: Callable[[str], dict[str, Any]],
) -> None:
    scene = attacked("look")
    seen = scene["result"]
    assert set(seen["descriptors"].values()) == {os.devnull}
    assert set(seen["descriptors"]) == {"0", "1", "2"}
    assert set(seen["first"]) == {False}
    assert seen["others"] == {}
    assert seen["outside"] == []
    assert scene["alive"]
    assert not seen["terminal"]
    assert seen["own_terminal"]
    assert not seen["device"]
    assert {"null", "pts", "ptmx", "shm", "tty", "urandom"} <= {*seen["devices"]}
    assert all(any(fnmatch(name, pattern) for pattern in KEPT) for name in seen["devices"])
    assert set(seen["usable"]) == {True}
    assert seen["oom_score"] == 1000
    assert seen["of_the_same_trial"], "debuggers of a trial's own programs work"
    status = dict(line.split(":\t", 1) for line in seen["status"].splitlines() if ":\t" in line)
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_descriptors_on_their_way_between_programs_do_not_stop_those_of_the_worker(
    attacked: Callable[[str], dict[str, Any]],
) -> None:
    """The kernel counts by user: an ordinary user's workers could start no trial."""
    scene = attacked("flood")
    assert scene["result"] >= 256
    assert scene["outcomes"] == [1]


def test_agent_sees_the_memory_of_its_programs(attacked: Callable[[str], dict[str, Any]]) -> None:
    scene = attacked("look")
    use = scene["use"]
    assert 8 << 20 <= use["scratch"] < 9 << 20
    assert 32 << 20 <= use["shared"] < 33 << 20
    assert 32 << 20 <= use["proportional"] < 33 << 20
    assert 1 << 20 < use["private"] < 32 << 20
    if os.geteuid() == 0 or tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 9):
        assert scene["result"]["shmall"] == sandbox_scene.LIMITS["scratch_bytes"] // os.sysconf("SC_PAGE_SIZE")
        assert (scene["result"]["semaphores"], scene["result"]["queues"]) == (1, 1000)
