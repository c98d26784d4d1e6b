"""Other PMPI tools of a trial's program run, and the trial names them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from experiments.models import State, Trial
from tests.workers.profile import tool
from tests.workers.profile.ranks import PROGRAMS

SHOWN = {"name": "ends", "regex": r"own end (\d+)"}
OWN = """\
#include <mpi.h>
#include <stdio.h>
int MPI_Finalize(void) { int answer = PMPI_Finalize(); puts("own end 1"); return answer; }
"""
ABORTING = OWN.replace("#include <stdio.h>", "#include <stdio.h>\n#include <stdlib.h>").replace(
    "return answer", "abort()"
)


def linked(directory: Path, text: str) -> Path:
    (directory / "own.c").write_text(text)
    tool.build(directory / "linked", "-O1", "-pthread", PROGRAMS / "messages.c", directory / "own.c")
    directory.chmod(0o755)
    return directory / "linked"


def test_a_tool_in_the_program_runs_and_is_named(run_all: Callable[..., list[Trial]], tmp_path: Path) -> None:
    parameters = {"program": [str(linked(tmp_path, OWN))], "extract": [SHOWN], "ranks_per_host": 2}
    (trial,) = run_all(workload="command", cluster="local", parameters=parameters, sweep={"hosts": [1]})
    assert trial.state == State.FINISHED, trial.message
    assert trial.measurements.get(metric="command.ends").value == 1.0
    assert trial.conditions["mpi_tools"] == ["linked"]
    assert trial.measurements.get(metric="mpi_window_s").value > 0


def test_a_tool_that_aborts_fails_the_trial_with_and_without_a_profile(
    run_all: Callable[..., list[Trial]], tmp_path: Path
) -> None:
    parameters = {"program": [str(linked(tmp_path, ABORTING))], "extract": [SHOWN], "ranks_per_host": 2}
    for profile in ("summary", "none"):
        (trial,) = run_all(
            workload="command", cluster="local", parameters=parameters, sweep={"hosts": [1]}, profile=profile
        )
        assert trial.state == State.FAILED
        assert "signal 6" in trial.message or "SIGABRT" in trial.message
