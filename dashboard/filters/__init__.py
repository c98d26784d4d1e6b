"""What lists can be filtered by: one set of filters for each list, for its page and REST alike."""

from dashboard.filters.base import ListFilter
from dashboard.filters.lists import (
    ConfigurationFilter,
    ExperimentFilter,
    HistoryFilter,
    PredictionFilter,
    ReportFilter,
)
from dashboard.filters.trials import TrialFilter, TrialPageFilter

__all__ = [
    "ConfigurationFilter",
    "ExperimentFilter",
    "HistoryFilter",
    "ListFilter",
    "PredictionFilter",
    "ReportFilter",
    "TrialFilter",
    "TrialPageFilter",
]
