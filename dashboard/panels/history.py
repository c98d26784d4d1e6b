"""The chart of a history: trials, levels between steps, and the baseline."""

from __future__ import annotations

from django.utils import timezone

from analysis.numbers import grouped, plural
from analysis.statistics import History
from dashboard.charts.history import Level, over_time
from dashboard.charts.panel import Chart
from experiments.metrics import described
from experiments.selectors.history import ConfigurationHistory


def status_words(history: History) -> str:
    """Return the words of a flagged history without an unexpected step, else ''."""
    stepped = any(not change.expected for change in history.changes)
    return f"Newest trial {history.latest} baseline" if history.flagged and not stepped else ""


def load_words(record: ConfigurationHistory) -> str:
    """Return how many trials other load slowed, or ''."""
    slowed, count = sum(entry.slowed for entry in record.entries), len(record.entries)
    if not slowed:
        return ""
    effect = "which can look like steps, or hide them"
    return f"Other load slowed {grouped(slowed)} of {plural(count, 'trial')}, {effect}."


def history_chart(record: ConfigurationHistory) -> Chart:
    """Return the chart of a history that has entries."""
    description = described(record.metric)
    changes, baseline = record.history.changes, record.history.baseline
    stops = [*(change.index for change in changes), len(record.entries)]
    medians = [*(change.before.median for change in changes), baseline.summary.median if baseline else 0.0]
    levels = [Level(first, stop - 1, median) for first, stop, median in zip([0, *stops], stops, medians, strict=False)]
    limits = None
    if baseline and baseline.low is not None and baseline.high is not None:
        limits = (baseline.low, baseline.high)
    ends = [timezone.localtime(entry.ended_at) for entry in record.entries]
    figure = over_time(
        [entry.value for entry in record.entries],
        [f"trial {entry.trial}, {end:%Y-%m-%d %H:%M}" for entry, end in zip(record.entries, ends, strict=True)],
        levels,
        quantity=description.label,
        unit=description.unit,
        limits=limits,
        trials=[entry.trial for entry in record.entries],
        ends=ends,
    )
    title, subtitle = f"{description.label}, trial by trial", "band: 95 % expected, by the trials before the newest"
    return Chart("history", title, figure, subtitle=subtitle)
