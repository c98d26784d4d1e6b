"""An experiment as a Jupyter notebook for the Python client (nbformat 4.5)."""

from __future__ import annotations

import re
from typing import Any, Final

from dashboard.charts.parts import axis_title
from dashboard.exchange.client import requirement
from dashboard.labels import parameter_label
from dashboard.panels.experiment.axes import STEP
from dashboard.panels.experiment.results import Results
from experiments.metrics import described
from experiments.models import Experiment

_INTRODUCTION: Final = """\
# {name}

[The experiment]({address}/experiments/{slug}/) as data, through the Python client of Rankwire.

Before you start Jupyter:

1. Install the client from this server: `pip install jupyter plotly '{client}'`
2. Create a token on the page *Account* of the server, and put it into the environment, never into
   the notebook: `export RANKWIRE_TOKEN=...`
"""
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]{<>&|])")
_CONNECT: Final = """\
import os
from itertools import islice

import plotly.graph_objects as go
import polars as pl
from rankwire_client import Client

EXPERIMENT = {slug!r}
client = Client(os.environ.get("RANKWIRE_URL", {address!r}))  # reads RANKWIRE_TOKEN
answer = client.result(EXPERIMENT)["answer"]
print(answer["sentence"] if answer else "No answer yet.")"""
_TRIALS: Final = """\
trials = client.frame(experiment=EXPERIMENT)
trials"""
_BEST: Final = """\
METRIC = {metric!r}
points = client.configurations(experiment=EXPERIMENT, metrics=METRIC, ordering={order!r})
for point in islice(points, 5):
    print(point["parameters"], point["metrics"][METRIC])"""
_MEDIANS: Final = """\
X, SERIES = {x!r}, {series!r}
names = [pl.format("{{}} {{}}", pl.lit(name.removeprefix("parameter.")), pl.col(name)) for name in SERIES]
medians = (
    trials.drop_nulls([METRIC, X])
    .with_columns(series=pl.concat_str(names, separator=", ", ignore_nulls=True) if names else pl.lit("median and range"))
    .group_by("series", X)
    .agg(
        median=pl.col(METRIC).median(), lowest=pl.col(METRIC).min(), highest=pl.col(METRIC).max(), trials=pl.len()
    )
    .sort("series", X)
)
medians"""
_CHART: Final = """\
figure = go.Figure(layout={{"title": {title!r}, "xaxis_title": {x_title!r}, "yaxis_title": {y_title!r}}})
for (name,), line in medians.group_by("series", maintain_order=True):
    above, below = line["highest"] - line["median"], line["median"] - line["lowest"]
    bars = {{"array": above.to_list(), "arrayminus": below.to_list()}}
    figure.add_scatter(x=line[X].to_list(), y=line["median"].to_list(), name=name, mode="lines+markers", error_y=bars)
figure.update_yaxes(rangemode="tozero")
figure"""


def notebook_of(experiment: Experiment, address: str) -> dict[str, Any]:
    """Return the notebook; ``address`` is that of the server."""
    results = Results(experiment)
    deciding = results.deciding or "elapsed_s"
    metric = described(deciding)
    x = results.parameter
    is_sweep = x != STEP  # steps are configurations in their order
    words = {
        "name": _MARKDOWN.sub(r"\\\1", " ".join(experiment.name.split())),
        "slug": experiment.slug,
        "address": address,
        "client": requirement(address, "polars"),
        "metric": deciding,
        "order": f"{'-' if metric.direction == 'higher' else ''}metric:{deciding}",
        "x": f"parameter.{x}" if is_sweep else "configuration",
        "series": [f"parameter.{name}" for name in results.swept if is_sweep and name != x],
        "title": f"{experiment.name}: {metric.label.lower()}",
        "x_title": parameter_label(x) if is_sweep else "Configuration",
        "y_title": axis_title(metric.label, metric.unit.removeprefix("1"))["text"],
    }
    cells = [
        _cell(number, kind, source.format(**words))
        for number, (kind, source) in enumerate(
            [
                ("markdown", _INTRODUCTION),
                ("code", _CONNECT),
                ("markdown", "The five best points, sorted by the server: number of trials, median and range."),
                ("code", _BEST),
                ("markdown", "Each counted trial is a row, with every parameter and measurement in base units."),
                ("code", _TRIALS),
                ("markdown", "The main chart: median and full range of the repetitions."),
                ("code", _MEDIANS),
                ("code", _CHART),
            ]
        )
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _cell(number: int, kind: str, source: str) -> dict[str, Any]:
    outputs: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source, **outputs}
