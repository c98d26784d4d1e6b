"""Hostile programs of trials find and harm nothing, on both clusters."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.conf import settings as django_settings

from experiments.models import State, Trial

GOOD = "print('answer 42', flush=True)"


@pytest.fixture(params=["testbed", "local"])
def ended(
    request: pytest.FixtureRequest, run_all: Callable[..., list[Trial]], script_workload: object
) -> Callable[..., Trial]:
    """Runs one rank of a script to its end, on one cluster after the other."""

    def run(script: str, **fields: Any) -> Trial:
        defaults = {"cluster": request.param, "parameters": {"script": script, "hosts": 1}, "certificate": "skip"}
        return run_all(workload="script", **{**defaults, **fields})[0]

    return run


@pytest.fixture
def reported(ended: Callable[..., Trial]) -> Callable[..., Any]:
    """Return the value of an expression at the end of a script inside of a trial."""

    def run(script: str, expression: str) -> Any:
        trial = ended(f"{script}\nimport json\nprint('value', json.dumps({expression}))\n{GOOD}")
        assert trial.state == State.FINISHED, trial.message + trial.traceback
        printed = trial.artifacts.get(name="stdout.txt").file.read_text()
        (line,) = [line for line in printed.splitlines() if line.startswith("value ")]
        return json.loads(line.removeprefix("value "))

    return run


@pytest.fixture
def secret_files(settings: Any) -> Iterator[tuple[list[str], str]]:
    """Return files as an installation has, in its var directory and not, and a word."""
    word = secrets.token_hex(8)
    files = [Path(django_settings.VAR) / name for name in ("services.json", "admin-password", "secret-key")]
    files.append(Path("/opt" if os.access("/opt", os.W_OK) else Path.home(), f"secret-key-{word}"))
    settings.SETTING_FILES = files[-1:]
    for file in files:
        file.write_text(word)
        file.chmod(0o644)
    yield [str(file) for file in files], word
    for file in files:
        file.unlink()


READ = """
def read(name):
    try:
        return open(name).read()
    except OSError as error:
        return error.strerror
"""


def test_they_read_no_secret_of_the_installation(
    reported: Callable[..., Any], secret_files: tuple[list[str], str]
) -> None:
    files, word = secret_files
    assert word not in str(reported(READ, f"[read(name) for name in {files!r}]"))


def test_they_see_nothing_of_the_var_directory_but_their_own(reported: Callable[..., Any]) -> None:
    script = (
        f"import os\nseen = [os.path.join(at, n) for at, d, f in os.walk({str(django_settings.VAR)!r}) for n in d + f]"
    )
    seen = [Path(name).relative_to(django_settings.VAR) for name in reported(script, "seen")]
    assert {path.parts[0] for path in seen} <= {"trials"}
    assert len({path.parts[1] for path in seen if len(path.parts) > 1}) <= 1
    assert {path.parts[2] for path in seen if len(path.parts) > 2} <= {"work", "ranks"}


def test_they_reach_no_service_of_this_machine(reported: Callable[..., Any], services: Any) -> None:
    abstract = f"rankwire-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{abstract}")
        listening.listen()
        sockets = [str(path) for path in Path(django_settings.VAR).rglob("*") if path.is_socket()]
        script = f"""
import socket
def reached(family, address):
    try:
        socket.socket(family).connect(address)
        return True
    except OSError:
        return False
ports = [("127.0.0.1", port) for port in ({services.postgres.port}, {services.redis.port})]
tried = [reached(socket.AF_INET, address) for address in ports]
tried += [reached(socket.AF_UNIX, name) for name in {sockets!r} + ["\\0{abstract}"]]
"""
        assert set(reported(script, "tried")) == {False}


def test_they_change_no_file_of_another_trial(ended: Callable[..., Trial]) -> None:
    first = ended(GOOD)
    file = first.artifacts.get(name="stdout.txt").file
    before = file.read_bytes()
    ended(f"open({str(file)!r}, 'w').write('answer 43')\n{GOOD}")
    ended(f"open('../../{first.pk}/stdout.txt', 'w').write('answer 43')\n{GOOD}")
    assert file.read_bytes() == before


def test_they_change_nothing_outside_of_their_work(reported: Callable[..., Any]) -> None:
    script = """
import os
def written(name):
    try:
        open(name, "w").close()
        return True
    except OSError:
        return False
places = ["/etc/x", "/usr/bin/x", "/x", "../stdout.txt", "../capture.pcapng.zst", "/proc/sys/net/ipv4/tcp_rmem"]
"""
    assert reported(script, "[place for place in places if written(place)]") == []
    assert reported(script, "[written(place) for place in ('here', '/tmp/here', '/dev/shm/here')]") == [True] * 3


def test_they_see_no_temporary_file_of_others_and_leave_none(reported: Callable[..., Any]) -> None:
    with tempfile.NamedTemporaryFile() as other:
        assert reported("import os", f"os.path.exists({other.name!r})") is False
    remaining = Path("/tmp", f"left-{os.getpid()}")  # noqa: S108
    reported("", f"open({str(remaining)!r}, 'w').close()")
    assert not remaining.exists()


def test_they_have_no_capability_and_get_none(reported: Callable[..., Any]) -> None:
    lines = reported("", "open('/proc/self/status').read().splitlines()")
    status = dict(line.split(":", 1) for line in lines)
    held = {name: int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    assert set(held.values()) == {0}
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")


def test_they_open_sockets_of_few_families(reported: Callable[..., Any]) -> None:
    script = """
import socket
opened = []
for family in range(64):
    for protocol in (0, 9, 20):
        try:
            socket.socket(family, socket.SOCK_DGRAM, protocol).close()
            opened.append(family)
        except OSError:
            pass
"""
    assert set(reported(script, "opened")) <= {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}


def test_they_make_no_namespace_and_mount_nothing(reported: Callable[..., Any]) -> None:
    script = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
refused = [libc.unshare(flag) for flag in (0x10000000, 0x20000, 0x40000000)]
refused += [libc.mount(b"none", b"/tmp", b"tmpfs", 0, None), libc.umount2(b"/tmp", 2)]
"""
    assert set(reported(script, "refused")) == {-1}


def test_they_run_as_a_user_of_their_own_where_root_starts_them(reported: Callable[..., Any]) -> None:
    """An ordinary user has no second one: programs keep it without its rights."""
    user = reported("import os", "os.getuid()")
    assert user not in {0, os.getuid()} if os.geteuid() == 0 else user == os.getuid()


UNLESS_THE_WORKER_IS_SEEN = f"""
if os.path.exists("/proc/{os.getpid()}"):
    raise SystemExit("the worker is seen: what follows would end it, and everything else on this machine")
"""


def test_they_neither_see_nor_harm_the_worker_or_its_agent(reported: Callable[..., Any]) -> None:
    script = f"""
import ctypes, os, signal
{UNLESS_THE_WORKER_IS_SEEN}
def traced(pid):
    return ctypes.CDLL(None).ptrace(16, pid, 0, 0) == 0
others = [traced({os.getpid()}), traced(1)]
def opened(name):
    try:
        os.close(os.open(name, os.O_RDONLY))
        return True
    except OSError:
        return False
others += [opened(name) for name in ("/proc/1/root/etc", "/proc/1/mem", "/proc/1/environ", "/proc/1/cwd/etc")]
for number in (signal.SIGTERM, signal.SIGKILL):
    try: os.kill(1, number)
    except OSError: pass
"""
    assert set(reported(script, "others")) == {False}


def test_daemon_that_kills_all_it_sees_does_not_outlive_its_trial(ended: Callable[..., Trial]) -> None:
    mark = f"RANKWIRE_DAEMON={secrets.token_hex(8)}"
    name, _, value = mark.partition("=")
    script = f"""
import os, signal, time
{UNLESS_THE_WORKER_IS_SEEN}
os.environ[{name!r}] = {value!r}
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1, 32):
            if number not in (9, 19): signal.signal(number, signal.SIG_IGN)
        for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
            if pid != os.getpid():
                try: os.kill(pid, signal.SIGKILL)
                except OSError: pass
        os.execv("/bin/sleep", ["sleep", "1000"])
    os._exit(0)
time.sleep(60)
"""
    first = ended(script)
    assert first.state == State.FAILED
    assert "the worker is seen" not in first.message
    assert ended(GOOD).state == State.FINISHED
    assert [pid for pid in psutil.pids() if mark.encode() in _environment(pid)] == []


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def test_report_of_a_rank_that_the_trial_lacks_is_refused(ended: Callable[..., Trial]) -> None:
    """Its number is an index of the analyses."""
    script = (
        f"{GOOD}\nimport os, pathlib\nreports = pathlib.Path('../ranks')\n"
        "if os.fork(): os._exit(0)\n"
        "while not (reports / 'rank-0.json').exists(): pass\n"
        "text = (reports / 'rank-0.json').read_text().replace('\"rank\": 0', '\"rank\": 4611686018427387904')\n"
        "(reports / 'rank-4611686018427387904.json').write_text(text)\n"
        "(reports / 'rank-0.json').unlink()\n"
    )
    trial = ended(script)
    assert trial.state == State.FAILED, trial.message + trial.traceback
    assert "reported their CPU time" in trial.message


def test_directories_of_git_that_a_program_wrote_start_nothing(
    tmp_path: Path, run_all: Callable[..., list[Trial]]
) -> None:
    """Settings of a repository name a command; the next trial names a script in it."""
    marker = tmp_path / "marker"
    repository = Path(django_settings.VAR) / "trials" / "1" / "kept" / "repository"
    repository.mkdir(parents=True)
    (repository / "run.py").write_text("print(1)")
    git = ["git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["commit", "-qm", "x"],
        ["config", "core.fsmonitor", f"touch {marker}"],
    ):
        subprocess.run([*git, *words], check=True, timeout=60)
    program = {"program": ["python3", str(repository / "run.py")]}
    (trial,) = run_all(workload="command", parameters={**program, "hosts": 1}, cluster="local")
    assert trial.state == State.FAILED
    assert "can't open file" in trial.message
    assert not marker.exists()
