"""The longest chain of messages that wait for each other: what latency, volume and retransmissions add to a run, one after the other.

Every data packet continues a chain: of what its host sent before, or of what its host has heard, whichever explains more time.

latency
    a host that has been silent on a connection for a turn (capture point - host - capture point, smallest of its handshakes:
    the unloaded path, no queue) is taken to have waited for what it has heard; the turn is added. Heard is what was
    recorded a turn ago or earlier, of any connection; a pure ACK counts where data follow it at once (the sender's window
    was what it waited for). A packet right behind another of its host has queued behind it, and waited for nothing else.
volume
    the time that the link needs for the bytes of the packets on the chain: one port sends them one after the other, and one
    port receives them so. A link that was idle may hand two frames over at once and rest afterwards.
retransmissions
    a segment below the highest byte, no sooner than one round trip after the last segment of its direction, adds the
    silence before it, as it was. Sooner is reordering. A loss before the capture point whose segment was the last of its
    burst leaves only a silence, which nothing tells from computing.

Every part is cut where it would end behind the packet that it explains, and the parts follow one another: they add up to no
more than the run. Whether a message really had to wait for the one before, no capture tells: a host that computed meanwhile, or had
ranks that do not need each other, makes the latency an upper bound.
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
"""Beyond them no chain is followed any more; memory stays bounded."""
_USUAL_RATE_BPS: Final = 1e9
"""Weighs bytes against waits where the rate of the links is not known."""
_BURST_BYTES: Final = 2 * 1514
"""What a link may hand over at once."""
_NO_SKIP: Final = np.zeros(0, np.bool_)


class ChainAccumulator:
    """Follows the chains of all hosts over successive tables whose host and flow numbers mean the same."""

    def __init__(self, link_rate_bps: float | None = None) -> None:
        """``link_rate_bps`` is the rate of every host's link."""
        self._rate_known = link_rate_bps is not None
        self._ns_per_byte = 8e9 / (link_rate_bps or _USUAL_RATE_BPS)
        self._hosts = reserved(MOST_HOSTS, kernel.HOST)
        self._pending = reserved((MOST_HOSTS, kernel.PENDING), kernel.ARRIVAL)
        self._hands = reserved(MOST_FLOWS, kernel.HAND)
        self._ways = reserved(2 * MOST_FLOWS, kernel.WAY)
        self._seen = self._begun = [0, 0]

    def update(self, table: PacketTable, skip: npt.NDArray[np.bool_] | None = None) -> None:
        """Add the next packets; rows with ``skip`` (N,) set are as if not captured."""
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
        """(metrics, not_available) of the chain that explains most."""
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
            missing["chain_volume_s"] = "the rate of the links was not given"
        if (hosts["turn_ns"] == kernel.UNKNOWN).all():
            reason = "no handshake captured, so the unloaded path is not known"
            missing |= dict.fromkeys(("chain_latency_s", "chain_messages"), reason)
        else:
            measured["chain_latency_s"] = int(longest["latency_ns"]) / 1e9
            measured["chain_messages"] = int(longest["messages"])
        return measured, missing

    @property
    def _is_beyond_capacity(self) -> bool:
        return self._seen[0] > MOST_HOSTS or self._seen[1] > MOST_FLOWS

    def _begin_new(self) -> None:
        """Set the fields of new hosts and flows that do not begin with 0."""
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
