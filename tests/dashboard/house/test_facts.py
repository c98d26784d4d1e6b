"""Facts of an environment have units, acronyms and the system's names."""

from __future__ import annotations

from dashboard.labels import fact_rows

FACTS = {
    "cpu": {"cores": 2},
    "memory_bytes": 25_276_514_304,
    "tcp": {"net.ipv4.tcp_rmem": "4096 131072 33554432"},
    "variables": {"OMP_NUM_THREADS": "1"},
    "link": {"mtu": 4000, "bandwidth_bps": 1e9},
    "program": {"sha256": "c2fc"},
    "not_known": None,
}


def test_they_have_units_and_the_names_that_the_system_gives() -> None:
    reported = {name: value.replace("\N{NARROW NO-BREAK SPACE}", " ") for name, value in fact_rows(FACTS)}
    assert reported == {
        "CPU · cores": "2",
        "memory": "25.28 GB",
        "TCP · net.ipv4.tcp_rmem": "4096 131072 33554432",
        "variables · OMP_NUM_THREADS": "1",
        "link · MTU": "4 000 B",
        "link · bandwidth": "1 Gbit/s",
        "program · SHA-256": "c2fc",
    }
