"""Memory layout of the TCP pass: one record per connection and direction.

A connection has one record, and two for its directions, with shared list nodes. Row ``2 * connection`` of the
directions is the side that sends without ``REVERSE``, row ``2 * connection + 1`` the other. Sequence numbers are
unwrapped: 64-bit offsets from ``base``, the first number seen, so that 4 GiB are no boundary. Times are nanoseconds;
lengths, windows and offsets are bytes. Counts of packets have 32 bits: four billion in one direction.
"""

from __future__ import annotations

from typing import Final

import numpy as np

NO_NODE: Final = -1
UNKNOWN: Final = -1
SEQUENCE_SPACE: Final = 1 << 32

COUNTERS: Final = (
    "packets", "wire_bytes", "payload_bytes", "data_segments", "pure_acks", "syns", "fins", "rsts", "goodput_bytes",
    "retransmitted_segments", "retransmitted_bytes", "out_of_order_segments", "ambiguous_segments", "keep_alives",
    "zero_window_probes", "duplicate_acks", "triple_duplicate_acks", "zero_window_events", "window_full_events",
    "acked_unseen_segments", "rtt_samples", "response_samples", "gaps_forgotten", "segments_forgotten",
)  # fmt: skip
"""Columns of DIRECTION that add up over directions, connections and captures."""

DIRECTION: Final = np.dtype(
    [(name, np.int64 if name.endswith("_bytes") else np.uint32) for name in COUNTERS]
    + [
        # windows: raw fields, because the scale requires both SYNs
        ("window_sum", np.int64), ("window_count", np.uint32), ("window_min", np.int64),
        ("syn_window_sum", np.int64), ("syn_window_count", np.uint32), ("syn_window_min", np.int64),
        ("in_flight_max", np.int64), ("rtt_min_ns", np.int64),
        # sequence space of this side
        ("isn", np.int64), ("base", np.int64), ("highest", np.int64), ("last_start", np.int64),
        ("acked", np.int64), ("acked_known", np.int32), ("unseen_ack_ns", np.int64),
        # bytes sent only in a probe of a closed window: sending them again is no retransmission
        ("probe_start", np.int64), ("probe_end", np.int64),
        # bytes seen: the topmost run, and a list of the lower ones, highest first
        ("run_start", np.int64), ("run_end", np.int64), ("run_opened_ns", np.int64),
        ("runs", np.int32), ("runs_below", np.int32), ("gap_opened_ns", np.int64),
        # unacknowledged bytes, lowest first
        ("oldest", np.int32), ("newest", np.int32), ("outstanding", np.int32),
        # last values of this side
        ("last_window", np.int32), ("last_window_bytes", np.int64), ("repeats", np.int32), ("wscale", np.int32),
        ("syn_ns", np.int64), ("vpid", np.int64),
    ],
    align=True,
)  # fmt: skip

NO_SYN: Final = -2
"""``wscale`` before a SYN of that side; UNKNOWN (-1) if its SYN had no window scale option."""

CONNECTION: Final = np.dtype(
    [
        ("flow", np.int64), ("initiator", np.int64), ("handshake", np.int64),
        ("first_ns", np.int64), ("last_ns", np.int64), ("final_ack_ns", np.int64), ("jobid", np.int64),
        ("btl_handshakes", np.int64),
    ],
    align=True,
)  # fmt: skip

# Values of CONNECTION.handshake
HANDSHAKE_NONE: Final = 0
HANDSHAKE_SYN: Final = 1
HANDSHAKE_SYN_ACK: Final = 2
HANDSHAKE_DONE: Final = 3
HANDSHAKE_UNTIMED: Final = 4
"""Complete, but the initiator's next packet was not the pure ACK that ends the handshake: no round trip."""

NODE: Final = np.dtype(
    [("start", np.int64), ("end", np.int64), ("time_ns", np.int64), ("next", np.int32), ("repeated", np.int32)],
    align=True,
)

SAMPLE: Final = np.dtype([("series", np.uint32), ("draw", np.uint32), ("value", np.int64)], align=True)
"""One observation: ``series`` = (connection * SERIES + kind) * 2 + direction; ``draw`` selects the samples to keep when room runs out."""

SERIES: Final = 3
RTT_NS: Final = 0
RESPONSE_NS: Final = 1
IN_FLIGHT_BYTES: Final = 2

STORE: Final = np.dtype(
    [
        ("nodes", np.int64), ("node_room", np.int64), ("nodes_used", np.int64), ("free_node", np.int64),
        ("max_outstanding", np.int64), ("max_gaps", np.int64),
        ("samples", np.int64), ("sample_room", np.int64), ("samples_used", np.int64), ("draw_limit", np.int64),
        ("connections", np.int64), ("untracked", np.int64),
    ],
    align=True,
)  # fmt: skip
"""State shared by all connections, one record: addresses of node and sample arrays, their sizes and fill, the limits."""

SAMPLES_PER_PACKET: Final = 2
