"""Filters of lists, shared by pages and REST."""

from dashboard.filters.base import ListFilter
from dashboard.filters.lists import (
    ConfigurationFilter,
    ConfigurationListFilter,
    ExperimentFilter,
    HistoryFilter,
    PredictionFilter,
    ReportFilter,
)
from dashboard.filters.trials import TrialFilter, TrialPageFilter

__all__ = [
    "ConfigurationFilter",
    "ConfigurationListFilter",
    "ExperimentFilter",
    "HistoryFilter",
    "ListFilter",
    "PredictionFilter",
    "ReportFilter",
    "TrialFilter",
    "TrialPageFilter",
]
