"""Inter-arrival times of connections by direction: 13 bytes per packet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.packets import ENDS, NO_FLOW, NO_TIME, REVERSE, PacketTable
from analysis.traffic.interarrival import QUANTILES, sorted_quantile
from analysis.traffic.tcp import TcpAccumulator


def interarrival_by_connection(tables: Iterable[PacketTable]) -> list[dict[str, Any]]:
    """Return mean, quantiles and CV of d_i in seconds, by connection.

    Keys are the catalogue's ids, without suffix for both directions together, with ``_ab`` and ``_ba`` for one. Values of fewer than
    two stamped packets are absent.
    """
    tcp = TcpAccumulator()
    times, connections, backward = [], [], []
    ends: npt.NDArray[np.void] = np.zeros(0, ENDS)
    for table in tables:
        connection = tcp.update(table)
        followed = (connection != NO_FLOW) & (table.time_ns != NO_TIME)
        times.append(table.time_ns[followed])
        connections.append(connection[followed])
        backward.append(table.kind[followed] >= REVERSE)
        ends = table.flow_endpoints
    records = tcp.result().records
    if not len(records):
        return []
    of, time_ns = np.concatenate(connections), np.concatenate(times)
    of_flow = ends["hosts"][records["flow"], 0], ends["ports"][records["flow"], 0]
    turned = (records["host_a"] != of_flow[0]) | (records["port_a"] != of_flow[1])  # A of a flow sent its first packet
    from_a = np.concatenate(backward) == turned[of]
    rows: list[dict[str, Any]] = [{} for _ in records]
    for suffix, chosen in (("", slice(None)), ("_ab", from_a), ("_ba", ~from_a)):
        _describe(rows, of[chosen], time_ns[chosen], suffix)
    return rows


def _describe(
    rows: list[dict[str, Any]], of: npt.NDArray[np.uint32], time_ns: npt.NDArray[np.int64], suffix: str
) -> None:
    if not len(of):
        return
    order = np.argsort(of, kind="stable")  # file order stays within a connection
    of, time_ns = of[order], time_ns[order]
    begins = np.flatnonzero(np.diff(of, prepend=-1))
    for begin, end in zip(begins, [*begins[1:], len(of)], strict=True):
        gaps = np.sort(np.diff(time_ns[begin:end]))
        if len(gaps):
            row = rows[of[begin]]
            mean = float(gaps.mean())
            row[f"interarrival_mean_s{suffix}"] = mean / 1e9
            for identifier, share in QUANTILES.items():
                row[identifier + suffix] = sorted_quantile(gaps, share) / 1e9
            if mean > 0:
                row[f"interarrival_cv{suffix}"] = float(gaps.std()) / mean
