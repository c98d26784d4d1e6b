"""Counts of Open MPI's monitoring component: messages by pair of ranks."""

from __future__ import annotations

from pathlib import Path

COUNTS = 66


def options(place: Path) -> list[str]:
    """Return mpirun's arguments for it; `pml ob1` alone would switch it off."""
    parameters = {
        "pml": "ob1,monitoring",
        "pml_monitoring_enable": "2",
        "pml_monitoring_enable_output": "3",
        "pml_monitoring_filename": str(place / "seen"),
    }
    return [word for name, value in parameters.items() for word in ("--mca", name, value)]


def seen(place: Path) -> dict[tuple[int, int], tuple[int, int, list[int]]]:
    """Return (from, to) -> messages, bytes, messages by size.

    Size 0 is empty, k is floor(log2 bytes) + 1.
    """
    rows = {}
    for file in place.glob("seen.*.prof"):
        for line in file.read_text().splitlines():
            kind, *fields = line.split("\t")
            if kind == "E":
                source, target, size, messages, *counts = fields
                numbers = [int(count) for count in ",".join(counts).split(",") if count.strip()]
                rows[int(source), int(target)] = int(messages.split()[0]), int(size.split()[0]), numbers
    return rows


def sizes(rows: dict[tuple[int, int], tuple[int, int, list[int]]]) -> dict[int, list[int]]:
    """From -> messages by size."""
    return {
        rank: [
            sum(counts) for counts in zip(*(row[2] for (source, _), row in rows.items() if source == rank), strict=True)
        ]
        for rank in {source for source, _ in rows}
    }
