"""The 2011 report."""

from __future__ import annotations

import pytest

from analysis.traffic.legacy import legacy_report


def test_it_prints_every_digit_of_the_2011_sample() -> None:
    assert legacy_report(1954, 1_291_692, 16_113_371_000, 2_228_129, "0.000047") == {
        "Number of packets": "1954",
        "Data exchanged": "1291692",
        "Time difference": "16.113371",
        "Packets per second": "121.26574879955286823595",
        "Average Inter-arrival": ".00824635158648925281",
        "Average packet length": "661.05015353121801432958",
        "Average window size": "1140.29119754350051177072",
        "Average Round Trip Time": ".00004700000000000000",
        "Average Max Bandwidth [Throughput]": "194092118.73080859774820765957",
        "Average Transmission Rate": "641301.93489618032129962128",
        "Traffic Intensity": ".12499999999999999999",
    }


def test_it_leaves_out_what_needs_pings_where_there_are_none() -> None:
    report = legacy_report(1954, 1_291_692, 16_113_371_000, 2_228_129)
    assert "Average Round Trip Time" not in report
    assert "Average Max Bandwidth [Throughput]" not in report
    assert report["Average Transmission Rate"] == "641301.93489618032129962128"


@pytest.mark.parametrize(("packets", "duration_ns"), [(0, 10**9), (5, 0), (5, 999)])
def test_it_refuses_a_capture_without_packets_or_duration(packets: int, duration_ns: int) -> None:
    with pytest.raises(ValueError, match="2011 report"):
        legacy_report(packets, 0, duration_ns, 0)
