"""Placement of ranks on a trial's page: the cores of each machine, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from analysis import numbers
from analysis.mpi.placement import Core, Picture, Row, machines_of, pictures
from dashboard.help.terms import words_of

MOST_PICTURES: Final = 16
MOST_ROWS: Final = 256
_NAMED: Final = 2
"""Ranks that a core names; of more it shows the count."""


def placement(profile: Mapping[str, Any], conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return pictures of machines, a row of each rank, and findings with their names."""
    rows, every = profile["ranks"], pictures(profile["ranks"], machines_of(profile.get("machines", [])))
    placed = [row for row in rows if row.get("allowed")]
    return {
        "pictures": [_picture(picture) for picture in every[:MOST_PICTURES]],
        "pictures_left_out": max(0, len(every) - MOST_PICTURES),
        "rows": [_row(row) for row in placed[:MOST_ROWS]],
        "rows_left_out": max(0, len(placed) - MOST_ROWS),
        "findings": [
            {"id": f"finding.{name}", "name": words_of(f"finding.{name}"), "sentence": sentence}
            for name, sentence in conditions.get("placement_findings", {}).items()
        ],
    }


def _picture(picture: Picture) -> dict[str, Any]:
    machine, others = picture.machine, len(picture.names) - 1
    at = [picture.ranks.get(core, ()) for core in range(len(machine.cores))]
    cores = list(zip(machine.cores, at, strict=True))
    return {
        "name": machine.name,
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
