"""What lists can be filtered by: one set of filters for each list, for its page and REST alike."""

from dashboard.filters.lists import (
    ConfigurationFilter,
    ExperimentFilter,
    HistoryFilter,
    ListFilter,
    PredictionFilter,
    ReportFilter,
    TrialFilter,
)

__all__ = [
    "ConfigurationFilter",
    "ExperimentFilter",
    "HistoryFilter",
    "ListFilter",
    "PredictionFilter",
    "ReportFilter",
    "TrialFilter",
]
