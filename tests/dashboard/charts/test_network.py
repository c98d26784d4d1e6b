"""The map over delay and rate."""

from __future__ import annotations

import pytest

from analysis import sensitivity
from dashboard.charts.network import Timed, network_map, over_delay
from dashboard.charts.parts import Scale
from tests.analysis.sensitivity.programs import HERE, Program


def test_a_cell_of_the_map_leads_to_the_answer_for_its_link() -> None:
    fit = sensitivity.fit(Program().runs(0.01))
    assert "leads" not in network_map(fit, HERE, quantity="Loop time")["data"][0]
    heat = network_map(fit, HERE, quantity="Loop time", leads="?rate=*&delay=*")["data"][0]
    assert heat["leads"] == "?rate=*&delay=*"
    assert [float(word) for (word,) in heat["columns"]] == pytest.approx([x * 1e-3 for x in heat["x"]], rel=1e-3)
    assert [float(word) for (word,) in heat["rows"]] == pytest.approx([y * 1e9 for y in heat["y"]], rel=1e-3)


def test_trials_over_the_delay_lead_to_their_configuration() -> None:
    scale = Scale.of([1e-3], "s")
    rows = [Timed(1e-3, [1.0, 2.0], 7), Timed(2e-3, [3.0], 8)]
    traces = over_delay(rows, [Timed(3e-3, [4.0], 9)], "1 Gbit/s", scale, Scale.of([1.0], "s"), quantity="Loop time")[
        "data"
    ]
    assert [trace["of"] for trace in traces if "of" in trace] == [[7, 7, 8], [7, 8], [9], [9]]
