"""Rules over one study; importing a module enters its rules.

Findings are listed in that order within their group. A new rule is a function in one of these modules under ``@rule``.
"""

from analysis.conclusions.rules import scaling  # noqa: I001  (the order is the order of the findings)
from analysis.conclusions.rules import ranks, network, traffic, trust, wait, counters

__all__ = ["counters", "network", "ranks", "scaling", "traffic", "trust", "wait"]
