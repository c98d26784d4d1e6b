"""Figures from plain rows. Nothing here knows a request, a model or a theme: colours are names of CSS tokens."""

from dashboard.charts.fits import Fitted
from dashboard.charts.marks import Dots, Spark, dot_strip, sparkline
from dashboard.charts.parts import MOST_SERIES, Figure, Line, Published, Scale
from dashboard.charts.scaling import Best, efficiency, speed_up, time_parts
from dashboard.charts.sweep import over_parameter
from dashboard.charts.trial import packet_sizes, size_classes, throughput_over_time
from dashboard.charts.wire import interarrival_ccdf, neighbours_together, traffic_matrix

__all__ = [
    "MOST_SERIES",
    "Best",
    "Dots",
    "Figure",
    "Fitted",
    "Line",
    "Published",
    "Scale",
    "Spark",
    "dot_strip",
    "efficiency",
    "interarrival_ccdf",
    "neighbours_together",
    "over_parameter",
    "packet_sizes",
    "size_classes",
    "sparkline",
    "speed_up",
    "throughput_over_time",
    "time_parts",
    "traffic_matrix",
]
