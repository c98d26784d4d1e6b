"""Statistics for repeated trials: summaries, comparison of groups, steps over time. Pure; see each module for its sources."""

from analysis.statistics.changes import Baseline, Change, History, HistoryPoint, detect_changes
from analysis.statistics.comparison import (
    Comparison,
    adjust,
    cliffs_delta,
    compare_groups,
    differs_anywhere,
    effect_word,
    hedges_g,
    permutation_test,
)
from analysis.statistics.spread import PooledIntervals, equal_means
from analysis.statistics.summary import (
    MINIMUM_REPETITIONS,
    Interval,
    SampleSummary,
    detectable_difference,
    mean_interval,
    median_interval,
    moments_interval,
    outliers,
    ratio_interval,
    repetitions_needed,
    summarise,
)

__all__ = [
    "MINIMUM_REPETITIONS",
    "Baseline",
    "Change",
    "Comparison",
    "History",
    "HistoryPoint",
    "Interval",
    "PooledIntervals",
    "SampleSummary",
    "adjust",
    "cliffs_delta",
    "compare_groups",
    "detect_changes",
    "detectable_difference",
    "differs_anywhere",
    "effect_word",
    "equal_means",
    "hedges_g",
    "mean_interval",
    "median_interval",
    "moments_interval",
    "outliers",
    "permutation_test",
    "ratio_interval",
    "repetitions_needed",
    "summarise",
]
