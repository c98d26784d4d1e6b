"""The map over delay and rate."""

from __future__ import annotations

from analysis import sensitivity
from analysis.sensitivity import Link
from dashboard.charts.network import Named, network_map
from tests.analysis.sensitivity.programs import HERE, Program


def test_names_of_networks_reach_inwards_from_the_edges_of_the_map() -> None:
    named = [Named("near", Link(2e-6, 100e9)), Named("far", Link(10e-3, 1e9))]
    drawn = network_map(sensitivity.fit(Program().runs(0.01)), HERE, named)["data"][-1]
    assert (drawn["text"], drawn["textposition"]) == (["near", "far"], ["top right", "top left"])
