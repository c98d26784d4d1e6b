"""The draft of a network study of an experiment, at its typical size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from analysis.numbers import rounded
from analysis.sensitivity import EarlierTrial, Link, Range
from experiments.common.quantities import BANDWIDTH, DURATION
from experiments.models import Experiment
from experiments.selectors import ConfigurationRow, configuration_rows
from experiments.specification.network_study import KIND, expanded

_LEFT_OUT: Final = (
    "sweep",
    "zip",
    "where",
    "scaling",
    "grows_with_hosts",
    "warmups",
    "control",
    "seed",
    "goal",
    "order",
)
"""Fields of the previous sweep."""
_NAME: Final = 120
_UNASKED_BPS: Final = 1e9
"""Rate of a link without a limit: a study needs a first rate."""


def can_study_network(experiment: Experiment, rows: Sequence[ConfigurationRow]) -> bool:
    """Return True if a network study is possible: link settings, several hosts."""
    return emulates_links(experiment) and any(row.hosts > 1 for row in rows)


def emulates_links(experiment: Experiment) -> bool:
    """Return whether its cluster sets the links that a network study varies."""
    makes = experiment.cluster is not None and {"delay", "bandwidth"} <= experiment.cluster.traits.emulates
    return makes and not experiment.published


def network_draft(experiment: Experiment) -> dict[str, Any]:
    """Return the draft of the study at the fastest size of several hosts.

    Its range is centred on effects as large as the program's time, estimated from the trials of that size. Raise
    ValueError without such a size, InvalidSpec if no range remains beyond the link.
    """
    rows = configuration_rows(experiment, ("elapsed_s", "chain_messages", "chain_volume_s"))
    row = _worth_asking(rows)
    written = experiment.specification
    link = {**written.get("link", {}), **_swept(row, experiment, links=True)}
    here = Link(
        float(link.get("delay") or 0.0), float(link.get("bandwidth") or _UNASKED_BPS), float(link.get("loss") or 0)
    )
    to = Range.around(here, _earlier_trial(row, here))
    return expanded(
        {
            **{name: value for name, value in written.items() if name not in _LEFT_OUT},
            "name": f"{experiment.name}, network study"[:_NAME],
            "parameters": {**written.get("parameters", {}), **_swept(row, experiment, links=False)},
            "link": {**link, "bandwidth": here.rate_bps},
            "study": {
                "kind": KIND,
                "delay": DURATION.format(rounded(to.most_delay_s, 2)),
                "bandwidth": BANDWIDTH.format(rounded(to.least_rate_bps, 2)),
            },
            "repetitions": max(2, experiment.spec.at_least) if "repetitions" in written else 2,
        }
    )


def _worth_asking(rows: Sequence[ConfigurationRow]) -> ConfigurationRow:
    able = [row for row in rows if row.hosts > 1]
    if not able:
        raise ValueError("no size of this experiment has several hosts")
    timed = [(seconds, row.pk, row) for row in able if (seconds := row.median("elapsed_s")) is not None]
    return min(timed)[2] if timed else max(able, key=lambda row: row.hosts)


def _swept(row: ConfigurationRow, experiment: Experiment, *, links: bool) -> dict[str, Any]:
    """Return the levels of this size, of the link (unprefixed) or of the rest."""
    names = [name for name in experiment.specification.get("sweep", {}) if name.startswith("link.") is links]
    return {name.removeprefix("link."): row.parameters[name] for name in names if name in row.parameters}


def _earlier_trial(row: ConfigurationRow, here: Link) -> EarlierTrial:
    volume = row.median("chain_volume_s")
    bits = None if volume is None else volume * here.rate_bps
    return EarlierTrial(row.median("elapsed_s"), row.median("chain_messages"), bits)
