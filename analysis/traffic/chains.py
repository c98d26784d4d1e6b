"""The critical path of messages that wait for each other.

Its latency, bytes and retransmissions are not hidden by any overlap. Every data packet continues a chain: that of the
last data its host sent, or of the data its host has heard, whichever explains more time.

latency
    a host that has been silent on a connection for a turn (capture point - host - capture point, smallest of its handshakes:
    the unloaded path, no queue) is assumed to have waited for the data it has heard; the turn is added. Heard data were recorded at
    least a turn ago, on any connection; a pure ACK counts if data follow it at once (the sender waited for its window). A packet
    directly after another of its host has queued behind it, and waited for nothing else.
volume
    the time that the link needs for the bytes of the packets on the chain, which one port sends, and one receives, sequentially. An
    idle link may transmit two frames at once and pause afterwards.
retransmissions
    a segment below the highest byte, no sooner than one round trip after the last segment of its direction, adds the
    silence before it. Sooner is reordering. A loss before the capture point of the last segment of a burst leaves only a silence,
    which is indistinguishable from computing.

Every part ends at the packet that it explains, and the parts are sequential: their sum does not exceed the run. A capture does not
show if a message really had to wait for the previous one: hosts that computed meanwhile, or independent ranks of a host, make the
latency an upper bound.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import chains as kernel
from analysis.memory import reserved
from analysis.packets import NO_TIME, PacketTable

IDS: Final = ("chain_latency_s", "chain_messages", "chain_volume_s", "chain_retransmission_s")
MOST_HOSTS: Final = 2048
MOST_FLOWS: Final = 1 << 15
"""With more, chains are not followed; memory is bounded."""
_USUAL_RATE_BPS: Final = 1e9
"""Weighs bytes against waits if the rate of the links is unknown."""
_BURST_BYTES: Final = 2 * 1514
"""Bytes that an idle link may transmit at once."""
_NO_SKIP: Final = np.zeros(0, np.bool_)


class ChainAccumulator:
    """Follower of all hosts' chains over successive tables of equal numbers."""

    def __init__(self, link_rate_bps: float | None = None) -> None:
        """Prepare tables; ``link_rate_bps`` is the rate of every host's link."""
        self._rate_known = link_rate_bps is not None
        self._ns_per_byte = 8e9 / (link_rate_bps or _USUAL_RATE_BPS)
        self._hosts = reserved(MOST_HOSTS, kernel.HOST)
        self._pending = reserved((MOST_HOSTS, kernel.PENDING), kernel.ARRIVAL)
        self._hands = reserved(MOST_FLOWS, kernel.HAND)
        self._ways = reserved(2 * MOST_FLOWS, kernel.WAY)
        self._seen = self._begun = [0, 0]

    def update(self, table: PacketTable, skip: npt.NDArray[np.bool_] | None = None) -> None:
        """Add the next packets; rows with ``skip`` (N,) set are ignored."""
        self._seen = [len(table.hosts), len(table.flow_endpoints)]
        if self._is_beyond_capacity:
            return
        self._begin_new()
        kernel.follow_chains(
            table.kind, table.time_ns, table.src, table.dst, table.flow, table.orig_len, table.payload, table.seq,
            table.tcp_flags, _NO_SKIP if skip is None else skip, self._hosts, self._pending.ctypes.data, self._pending.size,
            self._hands, self._ways,
            self._ns_per_byte, round(_BURST_BYTES * self._ns_per_byte),
        )  # fmt: skip

    def metrics(self) -> tuple[dict[str, float], dict[str, str]]:
        """Return (metrics, not_available) of the chain that explains most."""
        if self._is_beyond_capacity:
            return {}, dict.fromkeys(IDS, f"more than {MOST_HOSTS} addresses or {MOST_FLOWS} connections")
        hosts = self._hosts[: self._begun[0]]
        chains = np.concatenate([hosts["sent"], hosts["into"]])
        explained = chains["latency_ns"] + chains["volume_ns"] + chains["retransmission_ns"]
        if not explained.any():
            return {}, dict.fromkeys(IDS, "no TCP data with a time stamp")
        longest = chains[int(explained.argmax())]
        measured: dict[str, float] = {"chain_retransmission_s": int(longest["retransmission_ns"]) / 1e9}
        missing: dict[str, str] = {}
        if self._rate_known:
            measured["chain_volume_s"] = int(longest["volume_ns"]) / 1e9
        else:
            missing["chain_volume_s"] = "the rate of the links is unknown"
        if (hosts["turn_ns"] == kernel.UNKNOWN).all():
            reason = "no handshake captured, so the unloaded path is unknown"
            missing |= dict.fromkeys(("chain_latency_s", "chain_messages"), reason)
        else:
            measured["chain_latency_s"] = int(longest["latency_ns"]) / 1e9
            measured["chain_messages"] = int(longest["messages"])
        return measured, missing

    @property
    def _is_beyond_capacity(self) -> bool:
        return self._seen[0] > MOST_HOSTS or self._seen[1] > MOST_FLOWS

    def _begin_new(self) -> None:
        """Initialise the fields of new hosts and flows that are not 0."""
        hosts, flows = (slice(begun, seen) for begun, seen in zip(self._begun, self._seen, strict=True))
        for records, names in (
            (self._hosts[hosts], ("sent_ns", "heard_ns")),
            (self._hands[flows], ("syn_ns", "syn_ack_ns")),
            (self._ways[2 * flows.start : 2 * flows.stop], ("last_ns", "ack_ns")),
        ):
            for name in names:
                records[name] = NO_TIME
        self._hosts["turn_ns"][hosts] = self._hosts["sent_way"][hosts] = kernel.UNKNOWN
        self._ways["highest"][2 * flows.start : 2 * flows.stop] = kernel.UNKNOWN
        self._begun = self._seen
