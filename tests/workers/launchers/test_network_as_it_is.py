"""Clusters whose network is not ours refuse to shape it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.experiments import factories
from tests.workers.clusters.trials import PlainLink
from workers import launchers
from workers.errors import ClusterUnavailable
from workers.trial.results import mtu_of

SETTINGS: dict[str, dict[str, Any]] = {"local": {}, "ssh": {"hosts": ["n1"], "port": 9}, "slurm": {}}
ASKED: dict[str, Any] = {
    "bandwidth": {"bandwidth_bps": 1e8},
    "MTU": {"mtu": 9000},
    "delay": {"delay_s": 0.004},
    "jitter": {"delay_s": 0.004, "jitter_s": 0.001},
    "loss": {"loss": 0.01},
    "topology": {"topology": "two sites"},
    "rates": {"rates_bps": (1e8,)},
    "queue": {"queue_bytes": 65536},
    "TCP congestion control": {"congestion_control": "reno"},
    "TCP buffer": {"tcp_buffer_bytes": 65536},
}


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("name", ASKED)
def test_it_refuses_a_link_that_it_does_not_make_and_names_what_was_asked(kind: str, name: str) -> None:
    link = replace(PlainLink(), **ASKED[name])
    with pytest.raises(ClusterUnavailable, match=f"here the network is taken as it is: .*{name}"):
        launchers.get(kind, SETTINGS[kind]).open(host_count=1, link=link)


@pytest.mark.parametrize("unasked", [{}, {"bandwidth_bps": None}])
def test_it_takes_a_link_of_which_nothing_is_asked(unasked: dict[str, Any]) -> None:
    with launchers.get("local").open(host_count=1, link=replace(PlainLink(), **unasked)) as session:
        assert session.alive()


def test_it_judges_the_packets_of_real_hosts_by_the_mtu_that_these_have() -> None:
    link = factories.specification(link={"mtu": 4000}).link
    jumbo = {"interface": {"name": "eth0", "mtu": 9000}}
    assert mtu_of("ssh", link, jumbo) == 9000
    assert mtu_of("testbed", link, jumbo) == 4000
    assert mtu_of("ssh", link, {"interface": {"name": "eth0"}}) == 4000
    assert mtu_of("local", link, {"interface": {"name": "lo", "mtu": 65536}}) == 4000
