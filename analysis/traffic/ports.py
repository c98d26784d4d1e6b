"""Load of the busiest link: the largest rate of one port in one direction.

A capture on a bridge has the traffic of all links, so its total is not the load of any of them: with four hosts on 1 Gbit/s the
bridge may carry 4 Gbit/s. The load of a link is the traffic that one host sends, or receives.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import ports as kernel
from analysis.memory import reserved
from analysis.packets import PacketTable

PEAK: Final = "port_peak_10ms_bps"
MOST_HOSTS: Final = 4096
"""More addresses are a scan or damage, not a cluster."""
_WINDOW_NS: Final = kernel.STEP_NS * kernel.STEPS
_NO_SKIP: Final = np.zeros(0, np.bool_)


class PortAccumulator:
    """Counter of every host's bytes over successive tables of equal numbers."""

    def __init__(self) -> None:
        self._hosts = 0
        self._steps = reserved((2 * MOST_HOSTS, kernel.STEPS), np.int64)
        self._newest = np.full(2 * MOST_HOSTS, np.iinfo(np.int64).min // 4)
        self._peak = reserved(2 * MOST_HOSTS, np.int64)

    def update(self, table: PacketTable, skip: npt.NDArray[np.bool_] | None = None) -> None:
        """Add the next packets; rows with ``skip`` (N,) set are ignored."""
        self._hosts = len(table.hosts)
        kernel.count_ports(
            table.kind, table.src, table.dst, table.time_ns, table.orig_len, _NO_SKIP if skip is None else skip,
            self._steps, self._newest, self._peak,
        )  # fmt: skip

    def metrics(self, duration_ns: int) -> tuple[dict[str, float], dict[str, str]]:
        """Return (metrics, not_available): bit/s of the fullest 10 ms of any port."""
        if self._hosts > MOST_HOSTS:
            return {}, {PEAK: f"more than {MOST_HOSTS} addresses"}
        kernel.end_windows(self._steps, self._peak)
        if not self._peak.any():
            return {}, {PEAK: "no IP packets with a time stamp"}
        if duration_ns < _WINDOW_NS:
            return {}, {PEAK: "the capture is shorter than the window"}
        return {PEAK: 8 * int(self._peak.max()) / (_WINDOW_NS / 1e9)}, {}
