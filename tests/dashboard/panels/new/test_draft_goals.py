"""Goals in drafts, which YAML may fill with any type."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.panels.new.draft import without_foreign_figures


@pytest.mark.parametrize("goal", ["optimise", 5, ["optimise"], {"optimise": ["hpl.gflops"]}])
def test_goal_of_another_shape_breaks_no_draft(goal: Any) -> None:
    draft = without_foreign_figures({"workload": "water", "goal": goal})

    assert draft["goal"] == ({"optimise": "water.loop_time_s"} if isinstance(goal, dict) else goal)
