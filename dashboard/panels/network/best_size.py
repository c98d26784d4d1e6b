"""Best number of hosts on other networks: sentence, table and chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from analysis import numbers
from analysis.conclusions.observations.needs import FittedNetwork
from analysis.conclusions.wording import clauses
from analysis.sensitivity import BestSize, best_size_on
from dashboard.charts.network import Named, over_sizes
from dashboard.charts.parts import Figure
from dashboard.panels.network.model import link_words

_SIZE: Final = "hosts"


def best_size(fits: Sequence[FittedNetwork], named: Sequence[Named], quantity: str) -> dict[str, Any] | None:
    """Contents of the panel; None if the combinations are not numbers of hosts."""
    if len(fits) < 2 or any(set(fit.where) != {_SIZE} for fit in fits):
        return None
    sizes = [int(str(fit.where[_SIZE])) for fit in fits]
    here = _stop(fits, Named("Current link", fits[0].here))
    others = [(network.name, _stop(fits, network)) for network in named]
    return {
        "sizes": [_hosts(size) for size in sizes],
        "sentence": _sentence(sizes, here, others),
        "rows": [_row(name, best_size_on, sizes) for name, best_size_on in (("Current link", here), *others)],
        "figure": _figure(sizes, here, quantity),
    }


def _stop(fits: Sequence[FittedNetwork], at: Named) -> BestSize:
    return best_size_on([fit.fit for fit in fits], at.link)


def _hosts(size: int) -> str:
    return numbers.plural(size, "host")


def _sentence(sizes: Sequence[int], here: BestSize, others: Sequence[tuple[str, BestSize]]) -> str:
    """Return the sentence on the current link and on other networks."""
    time = numbers.amount(here.elapsed[here.best].value, "s", 3)
    sure = numbers.amount(here.share, numbers.SHARE, 2)
    first = f"{_best(sizes, here.best)} on the current link: {time}, fastest in {sure} of the draws."
    changed: dict[int, list[str]] = {}
    for name, there in others:
        if there.best != here.best:
            changed.setdefault(there.best, []).append(name)
    elsewhere = [f"{_best(sizes, best)} on {_list(names)}" for best, names in sorted(changed.items())]
    if elsewhere:
        return f"{first} {clauses(elsewhere)}."
    return f"{first} No named network would change that." if others else first


def _best(sizes: Sequence[int], best: int) -> str:
    most = ", the most measured," if best == len(sizes) - 1 else ""
    return f"{_hosts(sizes[best])}{most} {'is' if sizes[best] == 1 else 'are'} best"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _row(name: str, best_size_on: BestSize, sizes: Sequence[int]) -> dict[str, Any]:
    return {
        "name": name,
        "link": link_words(best_size_on.link),
        "elapsed": [
            {"value": numbers.amount(time.value, "s", 3), "interval": numbers.interval(time.interval, "s")}
            for time in best_size_on.elapsed
        ],
        "best": _hosts(sizes[best_size_on.best]),
        "share": numbers.amount(best_size_on.share, numbers.SHARE, 2),
        "basis": "measured" if best_size_on.measured else "extended",
    }


def _figure(sizes: Sequence[int], here: BestSize, quantity: str) -> Figure:
    ends = [
        (estimate.interval.low or estimate.value, estimate.value, estimate.interval.high or estimate.value)
        for estimate in here.elapsed
    ]
    return over_sizes(sizes, ends, quantity=quantity)
