"""script/bootstrap on bare machines: one clear line, nothing half-done.

The machine is a directory of programs: the shell's own tools for real, and stand-ins that answer as a bare system does.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from config.services.lease import ROOT
from tests.script.bare_machine import Machine

KNOWS = 'for name; do case "$name" in show|--quiet=0|NOTHING) ;; *) echo "Package: $name";; esac; done'
"""As `apt-cache show` answers for several names: of each that it knows, whatever it says of the others."""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_names_the_packages_when_python_is_too_old(machine: Machine) -> None:
    machine.install("python3", 'case "$*" in *version_info*) exit 1;; *) echo "Python 3.9.2";; esac')
    result = machine.bootstrap()
    assert result.returncode == 1
    assert result.stderr == (
        "rankwire: Python 3.11 or newer is needed, this is Python 3.9.2; the packages are python3.11 and python3.11-venv\n"
    )
    assert not (machine.clone / ".venv").exists()


def test_it_lists_the_packages_where_there_is_no_apt(machine: Machine) -> None:
    machine.lack("*postgresql*")
    result = machine.bootstrap()
    assert result.returncode == 1
    assert (
        result.stderr
        == "rankwire: this system has no apt-get; install the programs of these Debian packages: postgresql\n"
    )


def test_it_says_that_it_needs_root_or_sudo(machine: Machine) -> None:
    machine.lack("*ethtool*")
    machine.install("apt-get", "exit 0")
    result = machine.bootstrap(FAKE_UID="1000")
    assert result.returncode == 1
    assert "rankwire: root or sudo is needed to install system packages: ethtool\n" in result.stderr


def test_it_installs_only_what_is_missing_and_takes_the_alternative_that_exists(machine: Machine) -> None:
    calls = machine.directory / "calls"
    machine.lack("*ethtool*", "*venv*")
    machine.install("apt-get", f'echo "$*" >> {calls}')
    machine.install("apt-cache", KNOWS.replace("NOTHING", "python3-venv"))
    machine.install("python3", "exit 0")
    machine.bootstrap()
    assert _installed(calls) == ["python3.11-venv", "ethtool"]


def test_it_installs_the_directory_server_of_the_tests_without_a_configuration(machine: Machine) -> None:
    calls = machine.directory / "calls"
    machine.lack("*slapd*")
    machine.install("debconf-set-selections", f"cat >> {calls}")
    machine.install("apt-get", f'echo "$*" >> {calls}')
    machine.install("apt-cache", KNOWS)
    _make_python(machine, "exit 0")
    machine.bootstrap()
    assert not [line for line in _lines(calls) if "slapd" in line]  # only the tests need it
    machine.bootstrap("--test")
    reported, installed = [line for line in calls.read_text().splitlines() if "slapd" in line]
    assert reported == "slapd slapd/no_configuration boolean true"
    assert installed.split("--no-install-recommends")[1].split() == ["slapd"]


@pytest.mark.parametrize(("arguments", "package"), [((), None), (("--test",), "python3.11-dev")])
def test_it_installs_the_headers_of_python_for_what_the_tests_compile(
    machine: Machine, arguments: tuple[str, ...], package: str | None
) -> None:
    calls = machine.directory / "calls"
    for name in ("requirements.lock", "requirements-test.lock"):
        (machine.clone / name).write_text(name)
    machine.install("apt-get", f'echo "$*" >> {calls}')
    machine.install("apt-cache", KNOWS)
    answers = 'case "$*" in *Python.h*) exit 1;; *-dev*) echo python3.11-dev;; *"pip install"*) exit 1;; esac'
    _make_python(machine, answers)
    result = machine.bootstrap(*arguments)
    assert result.stderr.splitlines()[-1].endswith("could not be installed")  # it came to the Python packages
    assert _installed(calls) == ([package] if package else [])


def test_python_packages_are_fetched_while_apt_brings_what_they_do_not_need(machine: Machine) -> None:
    calls = machine.directory / "calls"
    (machine.clone / "requirements-test.lock").write_text("lock")
    machine.lack("*slapd*", "*gcc*")
    machine.install("debconf-set-selections", "cat >/dev/null")
    machine.install("apt-cache", KNOWS)
    # Each waits for the other, as long as a test may: one after the other neither would end well.
    met = "n=0; while ! [ -e OTHER ]; do n=$((n + 1)); [ $n -lt 200 ] || exit 1; sleep 0.05; done"
    apt, pip = machine.directory / "apt", machine.directory / "pip"
    waits = f'*" slapd") : >{apt}; {met.replace("OTHER", str(pip))};;'
    machine.install("apt-get", f'case "$*" in {waits} esac; echo "$*" >>{calls}')
    _make_python(
        machine, f'case "$*" in *"pip install"*) : >{pip}; {met.replace("OTHER", str(apt))}; echo pip >>{calls};; esac'
    )
    (machine.programs / "sleep").symlink_to(shutil.which("sleep") or "/missing")
    machine.bootstrap("--test")
    lines = [line for line in _lines(calls) if " install " in line or line == "pip"]
    assert lines[0].endswith(" gcc"), "what is compiled needs it"
    assert sorted(line.split()[-1] for line in lines[1:]) == ["pip", "slapd"]


def test_what_was_begun_ends_with_a_failure_beside_it(machine: Machine) -> None:
    (machine.clone / "requirements.lock").write_text("lock")
    machine.lack("*ethtool*")
    machine.install("apt-cache", KNOWS)
    begun = machine.directory / "begun"
    machine.install("apt-get", f'case "$*" in *install*) while ! [ -s {begun} ]; do sleep 0.05; done; exit 100;; esac')
    _make_python(machine, f'case "$*" in *"pip install"*) echo $$ >{begun}; exec sleep 25;; esac')
    (machine.programs / "sleep").symlink_to(shutil.which("sleep") or "/missing")
    result = machine.bootstrap()
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "rankwire: the packages could not be installed: ethtool"
    pip = begun.read_text().strip()
    status = Path("/proc") / pip / "stat"
    for _ in range(100):
        if not status.exists() or ") Z " in status.read_text():
            return
        time.sleep(0.05)
    pytest.fail(f"process {pip} goes on")


def _make_python(machine: Machine, body: str) -> None:
    """A Python that answers by ``body``, in .venv too."""
    machine.install("python3", body)
    (machine.clone / ".venv" / "bin").mkdir(parents=True)
    (machine.clone / ".venv" / "bin" / "python").symlink_to(machine.programs / "python3")


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def _installed(calls: Path) -> list[str]:
    """The packages that apt was asked to install, in the order of the calls."""
    lines = [line for line in _lines(calls) if " install " in line]
    return [name for line in lines for name in line.split("--no-install-recommends")[1].split()]


def test_it_becomes_the_command_in_the_directory_it_was_called_from(tmp_path: Path) -> None:
    """On this machine, where all is installed."""
    command = [str(ROOT / "script" / "bootstrap"), "--test", "--", "sh", "-c", 'echo "$PWD $1"', "sh", "two words"]
    result = subprocess.run(command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert result.stdout.splitlines()[-1] == f"{tmp_path} two words"


def test_what_the_lists_say_can_be_installed_before_the_sources_are_there(machine: Machine) -> None:
    """With the Dockerfile's first files only: changed sources install nothing."""
    before = (ROOT / "Dockerfile").read_text().partition("RUN script/bootstrap --no-packages --locked")[0]
    copied = [word for line in before.splitlines() if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert copied
    for name in copied:
        shutil.copy(ROOT / name, machine.clone / name)
    calls = machine.directory / "calls"
    (machine.clone / ".venv" / "bin").mkdir(parents=True)
    python = machine.clone / ".venv" / "bin" / "python"
    python.write_text(f'#!{shutil.which("sh")}\necho "$*" >>{calls}\n')
    python.chmod(0o755)
    lock = hashlib.sha256((machine.clone / "package-lock.json").read_bytes()).hexdigest()
    for directory in ("node_modules", "staticfiles"):
        (machine.clone / directory).mkdir()
    (machine.clone / "node_modules" / ".installed").write_text(lock)

    assert machine.bootstrap("--locked").returncode == 0
    assert "--require-hashes -r requirements.lock" in calls.read_text()
    assert not {word for word in ("collectstatic", "workers.", "analysis.warm_up") if word in calls.read_text()}
    calls.unlink()
    assert machine.bootstrap("--no-kernels").returncode == 0
    assert "collectstatic" in calls.read_text()
    assert "analysis.warm_up" not in calls.read_text(), "the image's user has compiled them"
    assert machine.bootstrap().returncode == 0
    assert "workers.profile.library" in calls.read_text()
    assert calls.read_text().count("analysis.warm_up") == 1
    assert "pip install" not in calls.read_text(), "it is installed already"
    assert machine.bootstrap().returncode == 0
    assert calls.read_text().count("analysis.warm_up") == 1, "they are compiled already"


def test_packages_alone_makes_no_environment_of_python(machine: Machine) -> None:
    result = machine.bootstrap("--packages")
    assert result.returncode == 0, result.stderr
    assert not (machine.clone / ".venv").exists()


def test_a_complete_image_installs_nothing_and_runs_the_command(machine: Machine) -> None:
    (machine.clone / ".venv").mkdir()
    (machine.clone / ".venv" / ".complete").touch()
    machine.lack("*")
    result = machine.bootstrap("--", "sh", "-c", "echo started")
    assert (result.returncode, result.stdout) == (0, "started\n")
    assert not (machine.clone / "var").exists()


def test_no_packages_installs_only_what_the_python_packages_need(machine: Machine) -> None:
    calls = machine.directory / "calls"
    machine.lack("*")
    machine.install("apt-get", f'echo "$*" >> {calls}')
    machine.install("apt-cache", KNOWS.replace("NOTHING", "lammps"))
    machine.bootstrap("--no-packages", "--locked")
    assert "python3-venv" in calls.read_text()
    assert "lammps" not in calls.read_text()
