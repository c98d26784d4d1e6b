"""Network what-if: the page of an experiment."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analysis.sensitivity import Link
from experiments.models import DISTURBANCES, Experiment, Measurement, Network, Project, Trial
from tests.dashboard.studies_measured import NEEDY, NETWORK, SCALING, measured, needing, scaling
from tests.words import plain


@pytest.fixture
def study(library: Project) -> Experiment:
    return measured(library, NETWORK, needing)


def test_page_shows_answer_prediction_and_gains_of_other_links(page: Client, study: Experiment) -> None:
    response = page.get(f"/network/{study.slug}/")
    here = NEEDY.elapsed(Link(0.0, 1e9))
    assert response.context["answer"].sentence.startswith("Elapsed time stays within 10")
    assert response.context["prediction"]["elapsed"].startswith(f"{here:.1f}")
    rows = {row["words"]: row for row in response.context["bought"]}
    slower = float(rows["A tenth of the rate"]["faster"].removesuffix("×"))
    assert slower == pytest.approx(here / NEEDY.elapsed(Link(0.0, 1e8)), rel=0.02)
    assert rows["A tenth of the rate"]["basis"] == "measured"
    assert rows["10 Gbit/s"]["basis"] == "extended"
    assert not response.context["other_load"]
    slowed = Trial.objects.filter(experiment=study).update(trust="degraded", conditions={DISTURBANCES: ["other load"]})
    assert f"slowed {slowed} of {slowed} " in page.get(f"/network/{study.slug}/").context["other_load"]


def test_index_lists_the_users_experiments_of_which_a_study_is_possible(
    page: Client, person: User, study: Experiment, submit: Any
) -> None:
    Experiment.objects.filter(pk=study.pk).update(owner=person)
    submit(name="Not finished yet")
    several, one = submit(name="Several hosts"), submit(name="One host", sweep={"hosts": [1]})
    for experiment in (several, one):
        experiment.trials.update(state="finished")
    local = submit(name="Without a link", cluster="local", sweep={"hosts": [1]})
    other = submit(name="Of another user")
    Experiment.objects.filter(pk=other.pk).update(owner=None)
    for experiment in (local, other):
        experiment.trials.update(state="finished")
    assert page.get("/network/").context["own"] == [several]
    assert local.owner == person


def test_it_carries_the_model_and_a_map_with_contours(page: Client, study: Experiment) -> None:
    text = page.get(f"/network/{study.slug}/").text
    model, drawn = _carried(text, "network-model"), _carried(text, "figure-map-0")
    assert len(model["fits"][0]["draws"]["base"]) == 400
    assert model["fits"][0]["here"] == {"delay": 0.0, "rate": 1e9, "loss": 0.0}
    contours = [trace["contours"]["start"] for trace in drawn["data"] if trace["type"] == "contour"]
    assert contours == [1.05, 1.1, 1.25, 1.5]
    box = next(trace for trace in drawn["data"] if trace["name"] == "Measured")
    assert (max(box["x"]), min(box["y"])) == (pytest.approx(1.0), pytest.approx(0.1))


def test_page_names_the_deciding_time_everywhere(page: Client, library: Project) -> None:
    """The fit is of the program's own loop, which is shorter than the run."""
    study = measured(library, SCALING, lambda p: {"elapsed_s": 60.0, "water.loop_time_s": scaling(p)["elapsed_s"]})
    response = page.get(f"/network/{study.slug}/")
    assert response.context["quantity"] == "Loop time"
    assert "Elapsed time" not in response.text
    axes = [
        _carried(response.text, name)["layout"]["yaxis"]["title"]["text"] for name in ("figure-curve-0", "figure-stops")
    ]
    assert all(axis.startswith("Loop time") for axis in axes)


def test_page_shows_the_best_size_on_each_network(page: Client, library: Project) -> None:
    study = measured(library, SCALING, scaling)
    Network.replace_all(
        [Network(name="Far", delay_s=5e-3, rate_bps=1e9), Network(name="Near", delay_s=0, rate_bps=1e9)]
    )
    response = page.get(f"/network/{study.slug}/")
    stops = response.context["stops"]
    assert plain(stops["sentence"]).startswith("4 hosts, the most measured, are best on the current link: 2.0")
    assert plain(stops["sentence"]).endswith(" 1 host is best on Far.")
    assert stops["sizes"] == ["1 host", "2 hosts", "4 hosts"]
    assert [(row["name"], plain(row["best"]), row["basis"]) for row in stops["rows"]] == [
        ("Current link", "4 hosts", "measured"),
        ("Near", "4 hosts", "measured"),
        ("Far", "1 host", "extended"),
    ]
    drawn = _carried(response.text, "figure-stops")
    assert (drawn["data"][0]["x"], drawn["data"][1]["y"]) == ([1, 2, 4], [])


def _carried(text: str, element: str) -> Any:
    match = re.search(rf'id="{element}"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert match
    return json.loads(match[1])


def test_page_shows_progress_and_reloads_after_the_last_trial(page: Client, submit: Any, run: Any) -> None:
    address = f"/network/{submit().slug}/"
    asks = {"hx-request": "true", "hx-target": "live"}
    assert f'hx-get="{address}"' in page.get(address).text
    assert not page.get(address).context["may_follow"], "its trials may be the study"
    waiting = page.get(address, headers=asks)
    assert "<b>0</b> of" in waiting.text
    assert "HX-Refresh" not in waiting.headers
    run()
    assert page.get(address, headers=asks).headers["HX-Refresh"] == "true"
    assert "hx-get" not in page.get(address).text.partition('id="live"')[2].partition("</li>")[0]


def test_errors_of_predictions_are_relative_to_the_shown_times(page: Client, study: Experiment) -> None:
    first = Trial.objects.filter(experiment=study).first()
    Measurement.objects.filter(trial=first, metric="elapsed_s").update(value=40.0)  # far from the median of its link
    rows = page.get(f"/network/{study.slug}/").context["held_out"]["rows"]
    for row in rows:
        numbers = (re.match(r"[-\u2212+]?[\d.]+", row[name]) for name in ("predicted", "measured", "error"))
        predicted, measured, error = (float(number[0].replace("\u2212", "-")) for number in numbers if number)
        assert 1 + error / 100 == pytest.approx(predicted / measured, abs=0.02)
