"""The guides and the tests have the same journeys."""

from __future__ import annotations

import re
from pathlib import Path

from tests.browser.journeys.guide import STEPS, journeys, steps


def test_every_journey_of_the_guide_is_taken() -> None:
    tests = Path(__file__).parent.glob("test_*.py")
    taken = [name for test in tests for name in re.findall(r'as_the_guide_says\("(.+?)",', test.read_text())]
    assert sorted({*journeys(), "Why is B slower than A?"}) == sorted([*taken, *STEPS])
    assert all(map(steps, taken))
