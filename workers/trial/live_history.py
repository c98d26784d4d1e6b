"""What a trial did so far, for the charts that grow while it runs: few points, however long it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis import numbers
from workers.hosts.sampling import HostSample

MOST: Final = 120
"""Points; then two become one, and each further one stands for twice as many looks."""
QUANTITIES: Final = ("Bps", "pps")
_DIGITS: Final = 4


class LiveHistory:
    """Rates over the time of the launch, and the CPU time that every rank has used."""

    def __init__(self) -> None:
        self._points: list[dict[str, float]] = []
        self._looks: list[dict[str, float]] = []
        self._of_each = 1
        self._ranks: dict[str, tuple[str, float]] = {}

    def add(self, elapsed_s: float, rates: Mapping[str, Any], hosts: Sequence[HostSample]) -> None:
        """Take over one look; a rate that is not known yet counts as none."""
        self._looks.append({"t_s": elapsed_s, **{name: float(rates.get(name) or 0.0) for name in QUANTITIES}})
        if len(self._looks) >= self._of_each:
            self._points.append(_mean(self._looks))
            self._looks = []
        if len(self._points) >= MOST:
            self._points = [_mean(self._points[i : i + 2]) for i in range(0, MOST, 2)]
            self._of_each *= 2
        for host in hosts:
            for rank, cpu_s in host.ranks.items():
                known = self._ranks.get(rank, (host.host, 0.0))
                self._ranks[rank] = (host.host, max(cpu_s, known[1]))  # what it used stays when it has ended

    def shown(self) -> dict[str, Any]:
        """As the page takes it: columns of numbers, ranks in their order."""
        ranks = sorted(self._ranks.items(), key=lambda item: int(item[0]))
        return {
            "history": {
                name: [numbers.rounded(point[name], _DIGITS) for point in self._points] for name in ("t_s", *QUANTITIES)
            },
            "ranks": [[int(rank), host, round(cpu_s, 2)] for rank, (host, cpu_s) in ranks],
        }


def _mean(looks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of the rates; the time is that of the last one."""
    rates = {name: sum(look[name] for look in looks) / len(looks) for name in QUANTITIES}
    return {"t_s": looks[-1]["t_s"], **rates}
