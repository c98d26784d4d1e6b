"""Filters of lists, shared by pages and REST."""

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
