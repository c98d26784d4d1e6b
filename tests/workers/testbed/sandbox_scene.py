"""An agent and its sandbox, attacked from inside.

`python sandbox_scene.py ATTACK DIRECTORY`, in namespaces of `unshare`, prints JSON. It needs the system's Python,
`workers.agent` and `experiments.common`, so that another user can run a copy.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

from workers.agent import linux, process_table, rpc, sandbox, spawn

SECRET = "RANKWIRE_SCENE_SECRET"
PROGRAM_USER = 65530
LIMITS = {
    "processes": 4096, "open_files": 1024, "file_bytes": 1 << 30, "memory_bytes": 1 << 30, "scratch_bytes": 64 << 20,
    "files": 1000,
}  # fmt: skip
TRIES = 8
LONG_PATH = ":".join(f"/nowhere/{number}" for number in range(1000)) + ":/usr/bin"
"""Long enough to be looked through that a program is seen between the loss of its rights and execve."""
START = """
import ctypes, json, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def read(name, size=1 << 16):
    try:
        with open(name, "rb") as stream:
            return stream.read(size)
    except OSError:
        return b""
def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]
def traced(pid):
    if libc.ptrace(0x4206, pid, None, None):  # PTRACE_SEIZE
        return False
    libc.ptrace(17, pid, None, None)
    return True
def opened(name):
    try:
        os.close(os.open(name, os.O_RDWR))
        return True
    except OSError:
        return False
def report(result):
    with open("result.new", "w") as stream:
        json.dump(result, stream)
    os.rename("result.new", "result")
"""
WATCH = """
open("ready", "w").close()
result = {"seen": 0, "traced": 0, "environment": 0, "memory": 0, "descriptors": 0}
while not os.path.exists("stop"):
    for pid in pids():
        if b"sandbox_scene" in read(f"/proc/{pid}/cmdline"):
            result["seen"] += 1
            found = {
                "environment": b"RANKWIRE_SCENE_SECRET" in read(f"/proc/{pid}/environ"),
                "memory": opened(f"/proc/{pid}/mem"),
                "descriptors": os.access(f"/proc/{pid}/fd/0", os.F_OK),
                "traced": traced(pid),
            }
            if b"sandbox_scene" in read(f"/proc/{pid}/cmdline"):  # or it became its program meanwhile, as which it is fair game
                for name, success in found.items():
                    result[name] += success
report(result)
"""
STOP = """
open("ready", "w").close()
while not os.path.exists("stop"):
    for pid in pids():
        if b"sandbox_scene" in read(f"/proc/{pid}/cmdline"):
            try: os.kill(pid, signal.SIGSTOP)
            except OSError: pass
report({})
"""
LOOK = """
names = {}
for name in os.listdir("/proc/self/fd"):
    try: names[name] = os.readlink(f"/proc/self/fd/{name}")
    except OSError: pass
for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
    try: os.kill(1, number)
    except OSError: pass
first = [traced(1)] + [opened(f"/proc/1/{name}") for name in ("mem", "environ", "root/etc", "fd/0", "task/1/mem")]
others = {str(pid): read(f"/proc/{pid}/cmdline").decode() for pid in pids()}
child = os.fork()
if child == 0:
    time.sleep(60)
of_the_same_trial = traced(child)
os.kill(child, signal.SIGKILL)
outside = [pid for pid in range(2, 5000) if pid != os.getpid() and pid not in pids() and pid != child and traced(pid)]
report({"descriptors": names, "first": first, "others": others, "of_the_same_trial": of_the_same_trial, "outside": outside,
        "terminal": opened(os.environ["TERMINAL"]), "devices": sorted(os.listdir("/dev")), "device": opened(os.environ["DEVICE"]),
        "usable": [opened(f"/dev/{name}") for name in ("null", "zero", "full", "urandom")], "own_terminal": os.openpty(),
        "oom_score": int(read("/proc/self/oom_score_adj")),
        "status": read("/proc/self/status").decode(), "shmall": int(read("/proc/sys/kernel/shmall")),
        "semaphores": sum(libc.semget(0, 32000, 0o1600) >= 0 for _ in range(3)),
        "queues": sum(libc.msgget(0, 0o1600) >= 0 for _ in range(2000))})
import mmap
memory = mmap.mmap(-1, 32 << 20)
memory.write(bytes(32 << 20))
open("/tmp/file", "wb").write(bytes(8 << 20))
open("filled", "w").close()
time.sleep(60)
"""
FLOOD = """
import resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
kept, nothing, sent = [], os.open("/dev/null", os.O_RDONLY), 0
try:
    while True:
        kept.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
        kept[-1][0].setblocking(False)
        try:
            while True:
                socket.send_fds(kept[-1][0], [b"x"], [nothing] * 200)
                sent += 200
        except BlockingIOError:
            pass
except OSError:
    report(sent)
time.sleep(60)
"""
ATTACKS = {"watch": WATCH, "stop": STOP, "look": LOOK, "flood": FLOOD}


class Scene:
    """A sandbox with the directory `work`."""

    def __init__(self, directory: Path) -> None:
        self.work = directory
        directory.mkdir()
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        plan = sandbox.SandboxPlan(PROGRAM_USER, (), (), (str(directory),), LIMITS)
        self.sandbox = sandbox.Sandbox(plan, [descriptor])
        self.nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)

    def start(self, *argv: str, path: str = "/usr/bin") -> int:
        return spawn.start(
            spawn.Order(
                list(argv),
                {"PATH": path, "TERMINAL": os.environ["TERMINAL"], "DEVICE": os.environ["DEVICE"]},
                str(self.work),
                descriptors=[self.nothing] * 3,
                sandbox=self.sandbox,
            )
        )

    def python(self, text: str) -> int:
        return self.start("/usr/bin/python3", "-I", "-S", "-c", text)


def wait_for(file: Path, limit_s: float = 30.0) -> None:
    deadline = time.monotonic() + limit_s
    while not file.exists():
        if time.monotonic() > deadline:
            raise SystemExit(f"{file.name} does not appear")
        time.sleep(0.01)


def main(attack: str, directory: Path) -> None:
    linux.adopt_orphans()
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (128, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )  # as services have it
    neighbour, scene = Scene(directory / "neighbour"), Scene(directory / "work")
    neighbour.python("import time; time.sleep(60)")
    attacker = scene.python(START + ATTACKS[attack])
    outcomes, use = [], {}
    if attack == "flood":
        wait_for(scene.work / "result")
        ours, theirs = rpc.pair()
        rpc.Packets(ours).send({"do": "spawn"}, (scene.nothing,))
        outcomes.append(len((rpc.Packets(theirs).receive() or ({}, []))[1]))
    elif attack == "look":
        wait_for(scene.work / "filled")
        use = {
            "scratch": scene.sandbox.scratch_use_bytes(),
            "shared": process_table.shared_memory_bytes(attacker),
            "proportional": process_table.shared_memory_bytes(attacker, proportional=True),
            "private": process_table.private_memory_bytes(attacker),
        }
    else:
        wait_for(scene.work / "ready")
        spawn.START_LIMIT_S = 2.0 if attack == "stop" else 30.0
        for _ in range(TRIES):
            begun = time.monotonic()
            try:
                scene.start("true", path=LONG_PATH)
                outcomes.append(["started", time.monotonic() - begun])
            except OSError as error:
                outcomes.append([error.errno, time.monotonic() - begun])
        (scene.work / "stop").touch()
    wait_for(scene.work / "result")
    result = json.loads((scene.work / "result").read_text())
    alive = os.waitpid(scene.sandbox.pid, os.WNOHANG) == (0, 0)
    print(json.dumps({"result": result, "outcomes": outcomes, "alive": alive, "use": use}))
    sys.stdout.flush()
    scene.sandbox.end()
    neighbour.sandbox.end()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
