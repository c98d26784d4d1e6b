"""The scripts as files."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from config.services.lease import ROOT

SCRIPTS = [*sorted(path for path in (ROOT / "script").iterdir() if path.suffix == ""), ROOT / ".ci" / "run"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_it_is_a_valid_executable_that_says_what_it_does(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0
    if script.parent.name == "script":
        assert re.match(r"#!/bin/sh\n# [A-Z]", script.read_text())


def test_it_names_each_system_package_once_in_order_with_the_reason() -> None:
    lines = (ROOT / "script" / "packages.txt").read_text().splitlines()
    assert lines == sorted(set(lines))
    for line in lines:
        assert re.fullmatch(r"[a-z0-9.+|-]+ # \S.*", line), line


def test_it_pins_everything_by_hash_and_names_no_registry() -> None:
    for name in ("requirements.lock", "requirements-test.lock", "package-lock.json"):
        text = (ROOT / name).read_text()
        assert "://" not in re.sub(r'"(url|funding)": "[^"]*"', "", text), name
    for name in ("requirements.lock", "requirements-test.lock"):
        entries = re.split(r"\n(?=\S)", (ROOT / name).read_text().strip())
        assert all("--hash=sha256:" in entry for entry in entries if not entry.startswith("#")), name
