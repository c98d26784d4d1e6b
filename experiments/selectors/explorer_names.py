"""Names in explorer conditions: parameters and metrics."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from experiments import workloads
from experiments.common.quantities import Dimension
from experiments.metrics import described, is_metric
from experiments.specification.parameters import (
    CLUSTER_PARAMETERS,
    LAUNCH_PARAMETERS,
    LINK_PARAMETERS,
    RANKS,
    canonical,
    dimension_of,
    dimension_of_unit,
    is_text,
)
from experiments.specification.tree import Vocabulary

COLUMNS: Final = ("hosts", RANKS)
"""Integer columns of configurations; other parameters are in their JSON."""
_NAME: Final = re.compile(r"[A-Za-z][\w.\-]*")


def vocabulary_of(text: str) -> Vocabulary:
    """Return the meaning of the names in an expression.

    It is open: metrics cannot be listed, and former workloads have unknown parameters.
    """
    dimensions, words, parameters = _parameters()
    # A hyphen is part of a metric's name, or a minus sign.
    parts = {name.rsplit("-", cut)[0] for name in _NAME.findall(text) for cut in range(name.count("-") + 1)}
    metrics = {name for name in parts if is_metric(name)}
    units = {name: dimension_of_unit(described(name).unit) for name in metrics}
    return Vocabulary(
        all_names=parameters | metrics,
        dimensions=dimensions | {name: unit for name, unit in units.items() if unit is not None},
        words=words,
        numbers={*CLUSTER_PARAMETERS, *COLUMNS, *metrics},
        is_open=True,
        as_stored=_as_stored,
    )


@lru_cache(maxsize=1)  # the registry does not change
def _parameters() -> tuple[dict[str, Dimension], frozenset[str], frozenset[str]]:
    """Return dimensions, word parameters and all parameters, if workloads agree."""
    kinds: dict[str, list[tuple[Dimension | None, bool]]] = {}
    for workload in workloads.registry():
        for name in (*CLUSTER_PARAMETERS, *LAUNCH_PARAMETERS, *LINK_PARAMETERS, *workload.parameters_type.model_fields):
            kind = (dimension_of(workload.slug, name), is_text(workload.slug, name))
            kinds.setdefault(name, []).append(kind)
    agreed = {name: kind for name, (kind, *others) in kinds.items() if all(other == kind for other in others)}
    dimensions = {name: dimension for name, (dimension, _) in agreed.items() if dimension is not None}
    words = frozenset(name for name, (_, holds_words) in agreed.items() if holds_words)
    return dimensions, words, frozenset({*kinds, *COLUMNS})


def _as_stored(name: str, word: str) -> str:
    """Return a word as the parameter stores it. Raise ValueError for links.

    Words of workloads are stored as written.
    """
    if name not in LINK_PARAMETERS:
        return word
    try:
        return str(canonical(workloads.registry()[0].slug, name, word))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
