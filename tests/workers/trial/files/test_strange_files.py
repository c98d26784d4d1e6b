"""Trials that leave special files: no waiting, no serving, a message.

They run unconfined: a confined one reaches only its working directory (test_hostile_programs.py).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings

from experiments.files import trial_directory
from experiments.library import load_defaults
from experiments.models import Cluster, State, Trial

GOOD = "print('answer 42', flush=True)"
STAY = "import time; time.sleep(3)"


@pytest.fixture
def ended(run_all: Callable[..., list[Trial]], script_workload: object) -> Callable[..., Trial]:
    """Runs one script to its end."""

    def run(script: str, **fields: Any) -> Trial:
        load_defaults()
        Cluster.objects.filter(slug="local").update(settings={"confined": False})
        return run_all(workload="script", parameters={"script": script}, cluster="local", **fields)[0]

    return run


def served(trial: Trial) -> set[str]:
    return set(trial.artifacts.values_list("name", flat=True))


def in_the_place_of(name: str, what: str) -> str:
    made = {
        "pipe": f"os.mkfifo({name!r})",
        "link": f"os.symlink('/etc/passwd', {name!r})",
        "directory": f"os.mkdir({name!r})",
    }
    return f"{GOOD}\nimport os\nif os.path.exists({name!r}): os.remove({name!r})\n{made[what]}\n"


@pytest.mark.parametrize(
    ("what", "named"), [("pipe", "a pipe"), ("link", "a symbolic link"), ("directory", "a directory")]
)
def test_it_fails_where_the_printed_output_is_no_plain_file(ended: Callable[..., Trial], what: str, named: str) -> None:
    trial = ended(in_the_place_of("../stdout.txt", what) + STAY)  # long enough to be looked at while it runs
    assert trial.state == State.FAILED, trial.traceback
    assert f"stdout.txt is {named}, not a plain file" in trial.message
    assert "stdout.txt" not in served(trial)


@pytest.mark.parametrize(
    ("what", "named"), [("pipe", "a pipe"), ("link", "a symbolic link"), ("directory", "a directory")]
)
def test_it_fails_where_an_output_is_no_plain_file(
    ended: Callable[..., Trial], script_workload: Callable[..., None], what: str, named: str
) -> None:
    script_workload(outputs=("rates.csv",))
    trial = ended(in_the_place_of("rates.csv", what))
    assert trial.state == State.FAILED, trial.traceback
    assert f"rates.csv is {named}, not a plain file" in trial.message
    assert served(trial) >= {"stdout.txt"}
    assert "rates.csv" not in served(trial)


def test_it_writes_its_own_files_in_the_place_of_what_a_trial_put_there(
    ended: Callable[..., Trial], tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "file"
    outside.write_text("as it was")
    trial = ended(f"{GOOD}\nimport os\nos.symlink({str(outside)!r}, '../samples.json')\nos.mkdir('../ranks.json')")
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert outside.read_text() == "as it was"
    assert served(trial) >= {"samples.json", "ranks.json"}


def test_it_does_not_follow_the_directory_of_outputs(
    ended: Callable[..., Trial], script_workload: Callable[..., None]
) -> None:
    script_workload(outputs=("passwd",))
    trial = ended(f"{GOOD}\nimport os\nos.rename('../work', '../moved')\nos.symlink('/etc', '../work')")
    assert trial.state == State.FAILED, trial.traceback
    assert "work is no longer a directory" in trial.message
    assert "passwd" not in served(trial)


def test_it_fails_where_a_report_of_a_rank_is_a_pipe(ended: Callable[..., Trial]) -> None:
    trial = ended(f"import os; os.mkfifo('../ranks/rank-7.json'); {STAY}")
    assert trial.state == State.FAILED, trial.traceback
    assert "rank-7.json is a pipe" in trial.message


def test_it_reports_that_the_printed_output_was_removed(ended: Callable[..., Trial]) -> None:
    trial = ended(f"{GOOD}\nimport os\nos.remove('../stdout.txt')")
    assert trial.state == State.FAILED, trial.traceback
    assert "stdout.txt was removed while the trial ran." in trial.message


def test_it_fails_where_holes_make_kept_files_longer_than_the_disk_it_may_have(
    ended: Callable[..., Trial], script_workload: Callable[..., None], settings: Any
) -> None:
    settings.TRIAL_DISK_BYTES = 1 << 20
    script_workload(keeps=("*.log",))
    trial = ended(f"open('x.log', 'wb').truncate(2 << 20)\n{GOOD}")
    assert trial.state == State.FAILED, trial.traceback
    assert "The files that it keeps are 2 MiB long together" in trial.message
    assert "x.log" not in served(trial)
    assert "stdout.txt" in served(trial)


@pytest.mark.parametrize("end", ["", "import sys; sys.exit(3)"])
def test_it_keeps_the_beginning_and_the_end_of_a_long_output(
    ended: Callable[..., Trial], settings: Any, end: str
) -> None:
    settings.OUTPUT_LIMIT_BYTES = 10_000
    lines = "for number in range(20000): print('line', number, 'x' * 20)"
    trial = ended(f"print('answer 42')\n{lines}\n{end}")
    assert trial.state == (State.FAILED if end else State.FINISHED), trial.message + trial.traceback
    stored = trial.artifacts.get(name="stdout.txt").file.read_text().splitlines()
    assert sum(map(len, stored)) < 11_000
    assert stored[0] == "answer 42"
    assert stored[-1] == "line 19999 " + "x" * 20
    assert any("bytes are left out here" in line for line in stored)


def test_others_of_this_machine_cannot_look_into_a_trial(ended: Callable[..., Trial]) -> None:
    all_trials = Path(django_settings.VAR) / "trials"
    all_trials.mkdir(exist_ok=True)
    all_trials.chmod(0o755)
    trial = ended(GOOD)
    assert trial.state == State.FINISHED, trial.message
    directory = trial_directory(trial)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in directory.iterdir()}
    assert modes.keys() >= {"stdout.txt", "stderr.txt", "samples.json", "capture.pcapng.zst", "analysis.json.zst"}
    assert set(modes.values()) == {"0o640"}
    assert [oct(path.stat().st_mode & 0o777) for path in (directory, all_trials)] == ["0o750", "0o750"]
