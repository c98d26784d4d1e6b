"""Display filters for the packets between two hosts or ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.urls import reverse

from dashboard.charts.traffic import JOINED
from dashboard.panels.trial.packets import LONGEST_FILTER

_OR: Final = " || "


@dataclass(frozen=True, slots=True)
class Between:
    """A display filter, and the number of connections omitted to limit its length."""

    filter: str
    left_out: int = 0

    @classmethod
    def of(cls, analysis: Mapping[str, Any], kind: str, source: str, target: str) -> Between | None:
        """Return the filter of row ``source`` and column ``target``; None if unknown.

        ``kind``: rank or host. The names are those of the matrix: of one, or of the first and the last of
        neighbours.
        """
        matrix = (analysis.get("matrices") or {}).get(f"{kind}s") or {}
        labels = [str(label) for label in matrix.get("labels") or []]
        sources, targets = _meant(labels, source), _meant(labels, target)
        if not sources or not targets:
            return None
        if kind == "host":
            return cls(f"{_one_of('src', sources)} && {_one_of('dst', targets)}")
        ways = _ways(analysis.get("flows") or [], matrix.get("jobid"), set(sources), set(targets))
        return _together(ways) if ways else None


def between_address(trial: int, kind: str) -> str:
    """Return the address of a matrix square, with ``*`` for row and column."""
    return f"{reverse('trial-between', args=[trial])}?of={kind}&from=*&to=*"


def connection_filter(flow: Mapping[str, Any]) -> str:
    """Return the display filter of one connection, in both directions."""
    hosts = [_address(flow[f"host_{end}"], "addr") for end in "ab"]
    return " && ".join([*hosts, *(f"tcp.port == {flow[f'port_{end}']}" for end in "ab")])


def _meant(labels: Sequence[str], name: str) -> Sequence[str]:
    first, _, last = name.partition(JOINED)
    if first not in labels or (last or first) not in labels:
        return ()
    return labels[labels.index(first) : labels.index(last or first) + 1]


def _address(host: str, end: str) -> str:
    return f"{'ipv6' if ':' in host else 'ip'}.{end} == {host}"


def _one_of(end: str, hosts: Sequence[str]) -> str:
    words = _OR.join(_address(host, end) for host in hosts)
    return f"({words})" if len(hosts) > 1 else words


def _ways(flows: Sequence[Mapping[str, Any]], jobid: int | None, sources: set[str], targets: set[str]) -> list[str]:
    """Return connections between the ranks in this direction, largest first."""
    ways: list[tuple[int, str]] = []
    for flow in flows:
        if flow.get("jobid") not in (None, jobid):
            continue
        for a, b in (("a", "b"), ("b", "a")):
            if str(flow.get(f"rank_{a}")) in sources and str(flow.get(f"rank_{b}")) in targets:
                ends = (
                    _address(flow[f"host_{a}"], "src"),
                    f"tcp.srcport == {flow[f'port_{a}']}",
                    _address(flow[f"host_{b}"], "dst"),
                    f"tcp.dstport == {flow[f'port_{b}']}",
                )
                ways.append((flow[f"wire_bytes_{a}{b}"], " && ".join(ends)))
    return [words for _, words in sorted(ways, key=lambda way: -way[0])]


def _together(ways: Sequence[str]) -> Between:
    if len(ways) == 1:
        return Between(ways[0])
    parts: list[str] = []
    for way in ways:
        if len(_OR.join([*parts, f"({way})"])) > LONGEST_FILTER:
            break
        parts.append(f"({way})")
    return Between(_OR.join(parts), len(ways) - len(parts))
