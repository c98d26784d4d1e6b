"""Conservation of packets: the bridge carries what its ports carry."""

from __future__ import annotations

from pathlib import Path

import analysis
from tests.analysis.recordings.three_points import record_everywhere


def test_packets_on_the_bridge_are_half_of_those_on_its_ports(tmp_path: Path) -> None:
    at = {device: analysis.analyse(path) for device, path in record_everywhere(tmp_path).items()}
    assert all(result.metrics["dropped_by_kernel"] == 0 for result in at.values())
    for name in ("packets", "wire_bytes", "payload_bytes"):
        assert 2 * at["br0"].metrics[name] == at["v1"].metrics[name] + at["v2"].metrics[name] > 0
    assert at["br0"].metrics["goodput_bytes"] == at["v1"].metrics["goodput_bytes"] == at["v2"].metrics["goodput_bytes"]
    assert {result.metrics["super_segments"] for result in at.values()} == {0}
