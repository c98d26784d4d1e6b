"""Placement of ranks on a trial's page: the cores of each machine, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from analysis import numbers
from analysis.mpi.placement import Core, Machine, Picture, Row, machines_of, pictures, ranks_in_words
from dashboard.help.terms import words_of

MOST_PICTURES: Final = 64
MOST_LARGE: Final = 4
"""Pictures that name their ranks; more are small."""
MOST_ROWS: Final = 256
_NAMED: Final = 2
"""Ranks that a core names; of more it shows the count."""


def placement(profile: Mapping[str, Any], conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return pictures of machines, a row of each rank, and findings with their names."""
    rows, machines = profile["ranks"], machines_of(profile.get("machines", []))
    every = sorted(pictures(rows, machines), key=lambda picture: not _shared_count(picture))
    placed = [row for row in rows if row.get("allowed")]
    return {
        "headline": _headline(machines, conditions),
        "pictures": [_picture(picture) for picture in every[:MOST_PICTURES]],
        "pictures_left_out": max(0, len(every) - MOST_PICTURES),
        "is_small": len(every) > MOST_LARGE,
        "is_filtered": 0 < sum(map(bool, map(_shared_count, every))) < len(every),
        "rows": [_row(row) for row in placed[:MOST_ROWS]],
        "rows_left_out": max(0, len(placed) - MOST_ROWS),
        "findings": [
            {"id": f"finding.{name}", "name": words_of(f"finding.{name}"), "sentence": sentence}
            for name, sentence in conditions.get("placement_findings", {}).items()
        ],
    }


def _headline(machines: Sequence[Machine], conditions: Mapping[str, Any]) -> str:
    """Return the placement in words, and whether all ranks stayed on their sockets."""
    moved = "migrated_rank" in conditions.get("placement_findings", {})
    stayed = "" if moved or all(len(machine.sockets) < 2 for machine in machines) else "no rank moved between sockets"
    return "; ".join(filter(None, (conditions.get("placement", ""), stayed)))


def _shared_count(picture: Picture) -> int:
    return sum(len(ranks) > 1 for ranks in picture.ranks.values())


def _picture(picture: Picture) -> dict[str, Any]:
    machine, others = picture.machine, len(picture.names) - 1
    at = [picture.ranks.get(core, ()) for core in range(len(machine.cores))]
    cores = list(zip(machine.cores, at, strict=True))
    usable, shared = sum(not machine.allowed.isdisjoint(core.cpus) for core in machine.cores), _shared_count(picture)
    ranks = [row for those in at for row in those]
    facts = (
        ranks_in_words(ranks) if not others else f"{numbers.plural(len(ranks), 'rank')} each",
        f"{usable} of {numbers.plural(len(machine.cores), 'core')} allowed" if usable < len(machine.cores) else "",
    )
    return {
        "name": machine.name,
        "facts": ", ".join(filter(None, facts)),
        "shared": numbers.plural(shared, "shared core") if shared else "",
        "others": f"and {numbers.plural(others, 'equal host')}" if others else "",
        "names": ", ".join(picture.names[1:]),
        "label": _in_words(picture),
        "sockets": [
            {"number": socket, "nodes": list(_nodes(list(those), machine.allowed))}
            for socket, those in groupby(cores, key=lambda pair: pair[0].socket)
        ],
    }


def _nodes(cores: Sequence[tuple[Core, Sequence[Row]]], allowed: frozenset[int]) -> Iterator[dict[str, Any]]:
    for numa, those in groupby(cores, key=lambda pair: pair[0].numa):
        yield {"number": numa, "cores": [_core(core, ranks, allowed) for core, ranks in those]}


def _core(core: Core, ranks: Sequence[Row], allowed: frozenset[int]) -> dict[str, Any]:
    names = [numbers.grouped(row["rank"]) for row in ranks]
    used = {row["cpu"] for row in ranks}
    state = "shared" if len(ranks) > 1 else "used" if ranks else "free"
    cpus = ", ".join(map(str, core.cpus))
    return {
        "state": state if allowed.intersection(core.cpus) else "outside",
        "words": " ".join(names) if len(names) <= _NAMED else f"{len(names)}×",
        "title": f"CPU {cpus}: {'rank ' + ', '.join(names) if names else 'no rank'}",
        "threads": [cpu in used for cpu in core.cpus] if len(core.cpus) > 1 else [],
    }


def _in_words(picture: Picture) -> str:
    """Return a picture as one sentence for screen readers."""
    machine = picture.machine
    sockets = len({core.socket for core in machine.cores})
    ranks = sum(map(len, picture.ranks.values()))
    return (
        f"{machine.name}: {numbers.plural(sockets, 'socket')}, {numbers.plural(len(machine.cores), 'core')}; "
        f"{numbers.plural(ranks, 'rank')} on {numbers.plural(len(picture.ranks), 'core')}"
    )


def _row(row: Row) -> dict[str, Any]:
    places = {name: str(row[name]) if row[name] >= 0 else numbers.NOTHING for name in ("socket", "numa", "core")}
    return {
        **places,
        "rank": numbers.grouped(row["rank"]),
        "host": row["host"],
        "cpus": ", ".join(map(str, row["cpus"])),
        "allowed": row["allowed"],
        "allowed_first": row.get("allowed_first", ""),
    }
