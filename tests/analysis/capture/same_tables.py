"""Two decoders, one table."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

import analysis
from analysis.capture.tshark_table import stream_with_tshark
from analysis.packets import ENDS, PacketTable

SHARED: Final = tuple(name for name in PacketTable.columns() if name != "fingerprint")


def read_with_tshark(path: Path) -> PacketTable:
    """Return the whole capture as one table."""
    tables = list(stream_with_tshark(path))
    return PacketTable.joined(tables, source={**tables[-1].source, "first_packet": 0})


def assert_same_tables(one: PacketTable, other: PacketTable) -> None:
    for name in (*SHARED, "flow_protocol", "flow_network", "btl_handshakes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.hosts == other.hosts
    for name in ENDS.names or ():
        np.testing.assert_array_equal(one.flow_endpoints[name], other.flow_endpoints[name], err_msg=name)


def same_from_both(path: Path) -> PacketTable:
    """Return the table that both decoders give."""
    native = analysis.read_capture(path, decoder="native")
    assert_same_tables(native, read_with_tshark(path))
    return native
