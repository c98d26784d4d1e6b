"""The head line of a load test: what each link carries, and what is used up first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from analysis.conclusions.context import Accepted
from analysis.conclusions.wording import joined, percent
from analysis.numbers import amount, plural, significant

NO_LINK: Final = "No link has been measured with one job and with more."
Ends = tuple[float | None, float | None]
"""Loads that are surely accepted and refused, if a measured one between them is neither."""


def carried(rows: Sequence[Accepted], open_ends: Sequence[Ends | None], is_arithmetic: bool) -> str:
    """One clause for all links of which the same is known."""
    groups: dict[str, list[str]] = {}
    for row, ends in zip(rows, open_ends, strict=True):
        groups.setdefault(_carried(row, ends), []).append(amount(row.capacity_bps, "bit/s"))
    clauses = [
        f"{joined(links)} {words.replace('carries', 'carry', 1) if len(links) > 1 else words}"
        for words, links in groups.items()
    ]
    no_capacity = " No capacity was measured: add pauses to the jobs or delay to the link." if is_arithmetic else ""
    return f"{'; '.join(clauses)}.{no_capacity}"


def _carried(row: Accepted, ends: Ends | None) -> str:
    if row.jobs is not None and row.first is not None and row.is_arithmetic:
        return (
            f"carries {_about(row)} by arithmetic: one job uses up {_named(row.first)}, so n jobs take n times as long"
        )
    used = used_up(row.first) if row.first else "nothing measured is used up"
    if row.jobs is None:
        return f"carries a number of jobs that was not measured; {used}"
    if ends is not None and ends[0] is not None:
        upper = f" and fewer than {significant(ends[1])}" if ends[1] else ""
        return f"carries at least {plural(ends[0], 'job')}{upper}, how many cannot be told yet, and {used}"
    between = f", read between {significant(row.between[0])} and {significant(row.between[1])}," if row.between else ""
    return f"carries {_about(row)}{between} and {used}"


def _about(row: Accepted) -> str:
    """ "about 24 jobs" between measured loads, "at least 40 jobs" beyond them."""
    about = "about " if row.between else "at least " if row.beyond_measured else ""
    return f"{about}{plural(row.jobs or 0, 'job', digits=3)}"


def used_up(resource: str) -> str:
    """ "the link is used up first", "the processors, most of it server CPU, are used up first"."""
    name, comma, _ = resource.partition(",")
    return f"{_named(resource)}{comma} {'are' if name.endswith('s') else 'is'} used up first"


def _named(resource: str) -> str:
    return resource if resource.startswith("the ") else f"the {resource}"


def use(row: Accepted) -> str:
    """Return what is used up on a link, and how much of it at how many jobs."""
    link = amount(row.capacity_bps, "bit/s")
    if row.used is None or row.at is None:
        return f"{link}: {row.first or 'no use was measured'}"
    return f"{link}: {row.first or row.most_used} {percent(row.share or 0.0)} in use at {plural(row.at, 'job')}"


def jobs_on_link(load: float, row: Accepted) -> str:
    return f"{plural(1, 'job')} and {plural(load, 'job')} on {amount(row.capacity_bps, 'bit/s')}"
