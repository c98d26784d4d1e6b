"""Each suggested command of a cluster check states its machine and its account."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from workers.cluster_check import step

_BEFORE_COMMANDS: Final = 4
"""Name, value, what was seen, and the remedy."""


def test_all_commands_of_all_steps_state_where_and_as_whom_they_are_run() -> None:
    calls = [
        node
        for path in Path(step.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("warning", "problem", "make")
    ]
    with_commands = [call for call in calls if len(call.args) > _BEFORE_COMMANDS]
    assert len(with_commands) > 7
    assert [ast.unparse(call) for call in with_commands if "at" not in {word.arg for word in call.keywords}] == []


def test_a_remedy_ends_with_the_place_of_its_command() -> None:
    made = step.warning(
        "Clocks", "off", "n2 is ahead.", "Use NTP.", "sudo apt install chrony", at=step.with_sudo(["n2"])
    )
    assert made.remedy == "Use NTP. Run this command on n2, as an account with sudo."
    assert step.warning("Clocks", "off", "n2 is ahead.", "Use NTP.", at=step.with_sudo(["n2"])).remedy == "Use NTP."
