"""Maps over two parameters: values, shared colours, and their experiments."""

from __future__ import annotations

import re
from math import log10

import pytest

from dashboard.charts.maps import difference_map, heat_map
from dashboard.charts.parts import Scale
from dashboard.panels.parts import Measured
from dashboard.panels.parts.grid import grid_part
from experiments.library import load_defaults
from experiments.models import Experiment, Measurement, State, Trial
from experiments.selectors.certificates import achieved
from experiments.specification import parse
from tests.kept_rows import PUBLISHED_STUDIES

X, Y = ["0 ms", "4 ms"], ["0 %", "1 %"]
CELLS = [[0.1, 0.2], [None, 0.4]]
TITLES = {"x_title": "Delay", "y_title": "Loss"}


def test_a_heat_map_prints_every_value_and_colours_by_the_logarithm_between_shared_ends() -> None:
    figure = heat_map(X, Y, CELLS, **TITLES, scale=Scale.of([0.1], "s"), ends=(0.1, 1.0))
    (trace,) = figure["data"]
    assert trace["z"] == [[log10(0.1), log10(0.2)], [None, log10(0.4)]]
    assert trace["text"] == [["100", "200"], ["", "400"]]
    assert (trace["zmin"], trace["zmax"]) == (-1.0, 0.0)
    notes = {(n["x"], n["y"]): (n["text"], n["font"]["color"]) for n in figure["layout"]["annotations"]}
    assert notes == {
        (0, 0): ("100", "--ink"),
        (1, 0): ("200", "--ink"),
        (1, 1): ("400", "--surface"),
    }


def test_a_difference_map_is_centred_in_percent_and_as_ratio() -> None:
    reference = [[0.2, 0.2], [0.2, None]]
    percent = difference_map(X, Y, CELLS, reference, **TITLES)["data"][0]
    assert percent["text"] == [["−50\u202f%", "0\u202f%"], ["", ""]]
    assert (percent["zmin"], percent["zmax"]) == (-50.0, 50.0)
    ratio = difference_map(X, Y, CELLS, reference, **TITLES, as_ratio=True)["data"][0]
    assert ratio["text"] == [["0.5×", "1×"], ["", ""]]
    assert ratio["zmin"] == pytest.approx(-ratio["zmax"])


def wide_area(**fields: object) -> Experiment:
    """A finished grid of delay and loss, 4 MiB."""
    spec = parse(
        {
            "name": "wide area",
            "workload": "pingpong",
            "parameters": {"hosts": 2, "message_bytes": 4_194_304},
            "sweep": {"link.delay": ["0 ms", "4 ms"], "link.loss": ["0 %", "1 %"]},
            "link": {"bandwidth": "300 Mbit/s"},
            "repetitions": 1,
            **fields,
        }
    )
    experiment = Experiment.submit(spec, project=load_defaults())
    for trial in experiment.trials.select_related("configuration"):
        delay_s, loss = (trial.configuration.parameters[name] for name in ("link.delay", "link.loss"))
        rows = [{"quantity": "delay", "achieved": delay_s + more} for more in (1e-4, 3e-4)]
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED, certificate={"kept": True, "rows": rows})
        Measurement.objects.create(
            trial=trial, metric="pingpong.transfer_time_s", value=0.1 + 0.1 * (loss > 0) + 0.2 * (delay_s > 0)
        )
    return experiment


@pytest.mark.django_db
def test_a_grid_gets_maps_the_published_one_and_both_kinds_of_x() -> None:
    PUBLISHED_STUDIES.restore()
    shown = grid_part(Measured.of(wide_area()), {})
    assert shown is not None
    (maps,) = shown["maps"]
    assert [panel["title"] for panel in maps["panels"]] == ["Measured", "Published 2007", "Difference"]
    assert [name for name, _ in maps["panels"][0]["views"]] == ["Map", "Contour"]
    assert maps["panels"][0]["views"][0][1]["data"][0]["text"] == [["0.1", "0.3"], ["0.2", "0.4"]]
    assert maps["panels"][1]["views"][0][1]["data"][0]["text"] == [["0.703", "0.971"], ["2", "2.8"]]
    cells = [figure["data"][0] for panel in maps["panels"] for _, figure in panel["views"]]
    assert all(trace["of"] == cells[0]["of"] for trace in cells), "a cell is marked in all maps together"
    published = Experiment.objects.get(slug="pinning-2007-wan").configurations
    led = [key for row in cells[2]["configurations"] for key in row]
    assert published.filter(pk__in=led).count() == 4, "cells of published values lead to these"
    (lines,) = shown["lines"]
    views = dict(lines["views"])
    medians = [trace for trace in views["As measured"]["data"] if trace["name"] == "loss 0 %"]
    assert medians[0]["x"] == pytest.approx([0.2, 4.2])
    assert [trace["x"] for trace in views["As requested"]["data"] if trace["name"] == "loss 0 %"] == [[0.0, 4.0]]
    assert views["As measured"]["layout"]["xaxis"]["tickvals"] == [0.0, 4.0]
    assert lines["steps"] == [("loss 0 %", "0 ms → 4 ms: 3×"), ("loss 1 %", "0 ms → 4 ms: 2×")]
    low, high = views["As measured"]["layout"]["xaxis"]["range"]
    assert low < 0.0
    assert high > 4.2


@pytest.mark.django_db
def test_one_parameter_of_the_link_has_steps_with_intervals() -> None:
    swept = wide_area(sweep={"link.delay": ["0 ms", "4 ms", "8 ms"]}, repetitions=2)
    for measurement in Measurement.objects.filter(trial__experiment=swept, trial__repetition=2):
        Measurement.objects.filter(pk=measurement.pk).update(value=1.1 * measurement.value)
    shown = grid_part(Measured.of(swept), {})
    assert shown is not None
    ((name, words),) = shown["lines"][0]["steps"]
    assert name == ""
    first, second = words.split("; ")
    assert re.fullmatch(r"0 ms → 4 ms: 3× \(\d\.\d+ to \d\.\d+\)", first)
    assert second.startswith("4 ms → 8 ms: 1× (0.")


@pytest.mark.django_db
def test_the_published_study_shows_both_of_its_tables_as_maps() -> None:
    PUBLISHED_STUDIES.restore()
    shown = grid_part(Measured.of(Experiment.objects.get(slug="pinning-2007-wan")), {})
    assert shown is not None
    assert len(shown["maps"]) == len(shown["lines"]) == 4
    assert "As measured" not in dict(shown["lines"][0]["views"])


@pytest.mark.django_db
def test_parameters_that_form_no_grid_get_no_map() -> None:
    zipped = wide_area(zip=[["link.delay", "link.loss"]])
    shown = grid_part(Measured.of(zipped), {})
    assert shown is not None
    assert shown["maps"] == []
    assert len(shown["lines"]) == 1


def test_a_certificate_gives_the_mean_of_its_directions() -> None:
    rows = [
        {"quantity": "delay", "achieved": 0.004},
        {"quantity": "delay", "achieved": 0.0042},
        {"quantity": "TCP rate", "achieved": 1.0},
        {"quantity": "loss", "achieved": None},
    ]
    assert achieved({"rows": rows}) == {"link.delay": pytest.approx(0.0041)}
