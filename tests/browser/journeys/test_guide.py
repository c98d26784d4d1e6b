"""The user guide and the tests have the same journeys."""

from __future__ import annotations

import re
from pathlib import Path

from tests.browser.journeys.guide import journeys


def test_every_journey_of_the_guide_is_taken() -> None:
    tests = Path(__file__).parent.glob("test_*.py")
    taken = [name for test in tests for name in re.findall(r'as_the_guide_says\("(.+?)",', test.read_text())]
    assert sorted(taken) == sorted(journeys())
    assert len(taken) == 6
