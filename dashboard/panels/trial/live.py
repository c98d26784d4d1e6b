"""Contents of the page of a running trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from dashboard.charts.live import ranks_so_far, rates_so_far
from dashboard.charts.panel import Chart
from experiments.models import Trial


def live_charts(progress: Mapping[str, Any]) -> list[Chart]:
    """Rates so far, and the processor time of each rank."""
    history = progress.get("history") or {}
    in_bytes = rates_so_far(history, "Bps", quantity="Throughput", unit="B/s")
    in_packets = rates_so_far(history, "pps", quantity="Packet rate", unit="packets/s")
    views = [("Bytes", in_bytes), ("Packets", in_packets)]
    ranks = ranks_so_far([(rank, host, cpu_s) for rank, host, cpu_s in progress.get("ranks") or []])
    return [
        Chart("live-rate", "Rate so far", in_bytes, subtitle="until the last sample", views=views, logarithm=False),
        Chart("live-ranks", "Ranks so far", ranks, subtitle="CPU time of each rank", logarithm=False),
    ]


def left_s(trial: Trial, length_s: float | None) -> float | None:
    """Return seconds until the estimated end; None without an estimate."""
    if length_s is None or trial.preparing_at is None:
        return None
    return max(0.0, length_s - max(0.0, (timezone.now() - trial.preparing_at).total_seconds()))
