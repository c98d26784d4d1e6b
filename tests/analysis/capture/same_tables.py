"""Two decoders, one table."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

import analysis
from analysis.capture.tshark_table import read_with_tshark
from analysis.packets import ENDS, PacketTable

SHARED: Final = tuple(name for name in PacketTable.columns() if name != "fingerprint")


def same_from_both(path: Path) -> PacketTable:
    """The table of both decoders."""
    native, second = analysis.read_capture(path, decoder="native"), read_with_tshark(path)
    for name in SHARED:
        np.testing.assert_array_equal(getattr(native, name), getattr(second, name), err_msg=name)
    assert native.hosts == second.hosts
    for name in ENDS.names or ():
        np.testing.assert_array_equal(native.flow_endpoints[name], second.flow_endpoints[name], err_msg=name)
    np.testing.assert_array_equal(native.flow_network, second.flow_network)
    return native
