"""A figure of many points writes what follows itself once, with its number."""

from __future__ import annotations

import json
from typing import Any

from dashboard.charts.parts import Line, Scale, spread
from dashboard.templatetags.rankwire import figure, in_runs


def dots(points: int, repetitions: int) -> dict[str, Any]:
    values = [[1.0 + k + 0.01 * r for r in range(repetitions)] for k in range(points)]
    line = Line("Measured", list(range(points)), values, of=list(range(100, 100 + points)))
    return spread(line, Scale.of([1.0], "s"), 0)[0]


def written_out(trace: dict[str, Any]) -> dict[str, Any]:
    """As static/charts.js does it."""
    runs = {name: [value for value, count in each for _ in range(count)] for name, each in trace["runs"].items()}
    return {name: value for name, value in trace.items() if name != "runs"} | runs


def test_places_and_configurations_of_many_trials_are_written_once() -> None:
    whole = dots(5, 40)
    sent = json.loads(figure({"data": [whole], "layout": {}}))["data"][0]
    assert sent["runs"]["of"] == [[100 + k, 40] for k in range(5)]
    assert "x" not in sent
    assert written_out(sent) == whole


def test_few_points_and_places_of_one_trial_stay_as_they_are() -> None:
    few, single = dots(5, 3), dots(80, 1)
    assert in_runs({"data": [few, single]}) == {"data": [few, single]}
    assert in_runs({"steps": []}) == {"steps": []}
