"""The unit of systemd."""

from __future__ import annotations

import configparser
import getpass
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from config.services.lease import ROOT

UNIT = ROOT / "config" / "systemd" / "rankwire.service"
PLACE = "/srv/rankwire"


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT)
    return parser


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    here = UNIT.read_text().replace(PLACE, str(ROOT)).replace("User=rankwire", f"User={getpass.getuser()}")
    (tmp_path / UNIT.name).write_text(here)
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / UNIT.name)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    messages = [line for line in answer.stderr.splitlines() if UNIT.name in line]
    assert (answer.returncode, messages) == (0, []), answer.stderr


def test_it_starts_a_program_that_is_there() -> None:
    program = ROOT / unit()["Service"]["ExecStart"].removeprefix(f"{PLACE}/")
    assert os.access(program, os.X_OK)
