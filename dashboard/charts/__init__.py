"""Figures from plain rows. Nothing here knows a request, a model or a theme: colours are names of CSS tokens."""

from dashboard.charts.marks import Dots, Spark, dot_strip, sparkline
from dashboard.charts.parts import MOST_SERIES, Figure, Line, Published, Scale
from dashboard.charts.sweep import over_parameter
from dashboard.charts.trial import packet_sizes, size_classes, throughput_over_time
from dashboard.charts.wire import interarrival_ccdf, traffic_matrix

__all__ = [
    "MOST_SERIES",
    "Dots",
    "Figure",
    "Line",
    "Published",
    "Scale",
    "Spark",
    "dot_strip",
    "interarrival_ccdf",
    "over_parameter",
    "packet_sizes",
    "size_classes",
    "sparkline",
    "throughput_over_time",
    "traffic_matrix",
]
