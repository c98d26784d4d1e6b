"""Eight faults of a whole server from outside."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from config.services.lease import ROOT
from config.services.service import free_port


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts the disk of the campaign")
@pytest.mark.timeout(900)
def test_eight_faults_lose_and_double_no_trial_and_everything_runs_again() -> None:
    options = ["--faults", "8", "--trials", "14", "--minutes", "4", "--away", "10", "--port", str(free_port())]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.campaign", *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
