"""Statistics for repeated trials: summaries, comparison, steps over time. Pure."""

from analysis.statistics.changes import History, HistoryPoint, detect_changes
from analysis.statistics.comparison import Comparison, compare_groups, differs_anywhere
from analysis.statistics.spread import PooledIntervals, equal_means
from analysis.statistics.summary import (
    MINIMUM_REPETITIONS,
    Interval,
    SampleSummary,
    moments_interval,
    ratio_interval,
    repetitions_needed,
    summarise,
)

__all__ = [
    "MINIMUM_REPETITIONS",
    "Comparison",
    "History",
    "HistoryPoint",
    "Interval",
    "PooledIntervals",
    "SampleSummary",
    "compare_groups",
    "detect_changes",
    "differs_anywhere",
    "equal_means",
    "moments_interval",
    "ratio_interval",
    "repetitions_needed",
    "summarise",
]
