"""The little program around each rank, on its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workers.launchers.job import PYTHON, WRAPPER

USERS = [os.getuid(), 65534] if os.getuid() == 0 else [os.getuid()]
"""Root may run a program as another user, too."""


def start(directory: Path, *program: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PYTHON, "-I", "-S", str(WRAPPER), str(directory), *program],
        env={"PATH": os.environ["PATH"], **variables},
        stderr=subprocess.PIPE,
        text=True,
    )


def report(directory: Path, rank: int) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((directory / f"rank-{rank}.json").read_text())
    return loaded


@pytest.mark.parametrize("variable", ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"])
def test_it_knows_its_rank_from_any_launcher(variable: str, tmp_path: Path) -> None:
    assert start(tmp_path, "true", **{variable: "17"}).wait(20) == 0
    assert report(tmp_path, 17)["rank"] == 17
    assert [path.name for path in tmp_path.iterdir()] == ["rank-17.json"]


def test_it_ends_as_the_program_ended_and_reports_it(tmp_path: Path) -> None:
    assert start(tmp_path, "sh", "-c", "exit 7").wait(20) == 7
    assert (report(tmp_path, 0)["exit_status"], report(tmp_path, 0)["signal"]) == (7, None)
    assert start(tmp_path, "sh", "-c", "kill -KILL $$").wait(20) == -signal.SIGKILL
    assert (report(tmp_path, 0)["exit_status"], report(tmp_path, 0)["signal"]) == (None, signal.SIGKILL)


@pytest.mark.parametrize("user", USERS)
def test_it_reports_the_bytes_of_the_program_and_its_children(user: int) -> None:
    """Newer kernels show /proc/PID/io of ended programs to root alone."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own are closed to other users
        directory = Path(name)
        directory.chmod(0o777)
        (directory / "in").write_bytes(bytes(1_000_000))
        (directory / "wrapper.py").write_bytes(WRAPPER.read_bytes())
        copy = f"dd if={name}/in of={name}/out bs=100000 count=7 conv=fsync status=none; exit 0"
        argv = [PYTHON, "-I", "-S", f"{name}/wrapper.py", name, "sh", "-c", copy]
        subprocess.run(argv, user=user, check=True, timeout=60, env={"PATH": os.environ["PATH"]})
        io = report(directory, 0)["io"]
    assert io["wchar"] == 700_000
    assert 700_000 <= io["rchar"] < 720_000, "what the loader reads of libraries counts"
    assert io["write_bytes"] in (0, pytest.approx(700_000, abs=40_000)), "0 in memory"
    assert io["read_bytes"] >= 0


def test_it_passes_signals_on(tmp_path: Path, eventually: Callable[..., object]) -> None:
    script = f"trap 'touch {tmp_path}/got; exit 5' USR1; touch {tmp_path}/up; while :; do sleep 0.01; done"
    wrapper = start(tmp_path, "sh", "-c", script)
    eventually((tmp_path / "up").exists)
    wrapper.send_signal(signal.SIGUSR1)
    assert wrapper.wait(20) == 5
    assert (tmp_path / "got").exists()


@pytest.mark.parametrize("call", ["wait4", "rename"])
def test_a_signal_after_the_end_costs_no_report(call: str, tmp_path: Path) -> None:
    """A launcher asks twice: the program is reaped, and its report is not yet written."""
    with_signal = f"""
import os, runpy, signal, sys
original = os.{call}
def then_asked(*arguments):
    result = original(*arguments)
    os.kill(os.getpid(), signal.SIGTERM)
    return result
os.{call} = then_asked
sys.argv = [{str(WRAPPER)!r}, {str(tmp_path)!r}, "true"]
runpy.run_path({str(WRAPPER)!r}, run_name="__main__")
"""
    done = subprocess.run([PYTHON, "-c", with_signal], timeout=60, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert report(tmp_path, 0)["exit_status"] == 0


def test_a_missing_program_is_said_and_leaves_no_report(tmp_path: Path) -> None:
    wrapper = start(tmp_path, "no-such-program")
    _, stderr = wrapper.communicate(timeout=60)
    assert (wrapper.returncode, stderr) == (127, "no-such-program: No such file or directory\n")
    assert list(tmp_path.iterdir()) == []


def test_a_preloaded_library_that_does_not_exist_ends_the_rank(tmp_path: Path) -> None:
    missing = tmp_path / "tool.so"
    wrapper = start(tmp_path, "true", LD_PRELOAD=f"libm.so.6:{missing}")
    assert wrapper.wait(20) == 127
    assert str(missing) in (wrapper.stderr.read() if wrapper.stderr else "")
    assert start(tmp_path, "true", LD_PRELOAD="libm.so.6:/$LIB/libdl.so.2").wait(20) == 0


def test_the_program_does_not_outlive_a_killed_launcher(tmp_path: Path, eventually: Callable[..., object]) -> None:
    launcher = subprocess.Popen(
        [
            *("sh", "-c", '"$@" & wait', "sh"),
            *(PYTHON, "-I", "-S", str(WRAPPER), str(tmp_path)),
            *("sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 1000"),
        ]
    )
    eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    launcher.kill()
    launcher.wait()
    eventually((tmp_path / "rank-0.json").exists)
    assert report(tmp_path, 0)["signal"] == signal.SIGTERM


def test_it_sees_the_mpi_library_of_a_program_that_a_script_starts(tmp_path: Path) -> None:
    load = "import ctypes.util, time; ctypes.CDLL('libmpi.so.40'); time.sleep(0.3)"
    variables = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
    assert start(tmp_path, "sh", "-c", f'{PYTHON} -c "{load}"; true', **variables).wait(20) == 0
    seen = report(tmp_path, 1)
    assert any(name.startswith("libmpi.so.40") for name in seen["mpi_libraries"])
    assert seen["mpi_world"] == variables


def test_it_sees_libraries_that_are_loaded_after_the_first(tmp_path: Path) -> None:
    """A program that loads slowly is looked at in the middle of it."""
    load = "import ctypes, time; ctypes.CDLL('libmpi.so.40'); time.sleep(0.03); ctypes.CDLL('libmpich.so.12'); time.sleep(0.3)"
    assert start(tmp_path, PYTHON, "-c", load).wait(20) == 0
    assert any(name.startswith("libmpich.so.12") for name in report(tmp_path, 0)["mpi_libraries"])


def test_it_reports_nothing_of_a_program_without_mpi(tmp_path: Path) -> None:
    assert start(tmp_path, "sleep", "0.1").wait(20) == 0
    assert "mpi_libraries" not in report(tmp_path, 0)
