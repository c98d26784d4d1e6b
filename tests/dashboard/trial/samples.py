"""Samples of hosts as a trial keeps them."""

from __future__ import annotations


def row(t_s: float, host: str = "n1", user: float = 0.5, **changes: float) -> dict[str, object]:
    """One row as `workers.hosts.sampling.shares` writes it."""
    return {
        "t_s": t_s,
        "host": host,
        "cpu_user_share": user,
        "cpu_system_share": 0.25,
        "memory_bytes": 1000,
        "runnable": 1,
        "rx_Bps": 10.0,
        "tx_Bps": 20.0,
        "rx_pps": 1.0,
        "tx_pps": 2.0,
        "drops": 0,
        **changes,
    }
