"""The panel of a search: gains, confirmed candidates, and what is missing."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from dashboard.charts.parts import bars_note
from dashboard.charts.search import best_so_far
from dashboard.panels.parts import Measured
from dashboard.panels.parts.search import search_part
from experiments.models import Experiment
from experiments.selectors.diagnosis import diagnosis_of
from tests.experiments import factories
from tests.workers.simulated_searches import end_trials, run_to_end, submit


@pytest.fixture
def searching(library: None, person: object) -> Experiment:
    experiment = submit()
    Experiment.objects.update(owner=person)
    return experiment


def test_part_shows_the_search_before_anything_is_confirmed(searching: Experiment, page: Client) -> None:
    end_trials(searching)

    part = search_part(Measured.of(searching), {})

    assert part is not None
    assert (part["candidates"], part["importance"], part["measured"]) == ([], None, 7)
    assert [trace["name"] for trace in part["chart"]["data"]] == ["Search trial", "Best so far"]
    assert diagnosis_of(searching).answer.strength == "open"
    assert page.get(searching.get_absolute_url()).status_code == 200
    assert page.get(reverse("experiment-parts", args=[searching.slug])).status_code == 200


def test_part_omits_importance_that_too_few_combinations_never_have(
    searching: Experiment, page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_trials(searching)
    part, address = search_part(Measured.of(searching), {}), reverse("experiment-parts", args=[searching.slug])
    assert part is not None
    for fewest, is_there in ((part["combinations"], True), (part["combinations"] + 1, False)):
        monkeypatch.setattr("dashboard.panels.parts.search.FEWEST_FOR_IMPORTANCE", fewest)
        assert ("Importance of each parameter" in page.get(address).content.decode()) is is_there


def test_part_shows_confirmed_gains_and_uses_them_for_a_new_experiment(searching: Experiment, page: Client) -> None:
    run_to_end(searching)
    answer = diagnosis_of(searching).answer
    best = answer.figure("times the start")
    assert best is not None

    part = search_part(Measured.of(searching), {})

    assert part is not None
    row = part["candidates"][0]
    assert row["ends"] == (best.low, best.high)
    assert part["is_better"] is (best.low > 1) is ("is best:" in answer.sentence)
    assert bars_note(part["chart"]) == f"Bars are {part['level']} confidence intervals."
    assert page.get(searching.get_absolute_url()).context["intervals"] == f"{part['level']} confidence intervals"
    assert {name: row["parameters"][name] for name in best.where} == dict(best.where)
    assert part["importance"] is not None
    draft = page.get(reverse("new"), {"from": searching.slug, "best": "1"}).context["form"].draft
    assert {name: draft["parameters"][name] for name in best.where} == dict(best.where)
    assert not {"goal", "sweep"} & draft.keys()
    charts = page.get(f"/api/v1/experiments/{searching.slug}/charts/").json()
    assert {"search", "importance"} <= {chart["name"] for chart in charts}


def test_the_chart_holds_both_ends_of_the_intervals() -> None:
    low, high = best_so_far([("a", 1.0), ("b", 1.9)], [("b", 1.8, 0.185, 14.5)])["layout"]["yaxis"]["range"]
    assert (low < 0.185, high > 14.5) == (True, True)


def test_part_is_absent_without_a_search(db: None) -> None:
    assert search_part(Measured.of(factories.experiment()), {}) is None


def test_pages_show_searches_that_this_installation_cannot_read(searching: Experiment, page: Client) -> None:
    run_to_end(searching)
    other = submit(name="other")
    end_trials(other)
    stored = searching.specification
    for fields in (
        {"workload": "lacking", "specification": {"workload": "lacking"}},
        {"specification": {"goal": {"optimise": "hpl.speed", "budget": {"trials": 90}}}},
        {"specification": {"goal": {"optimise": "hpl.gflops"}, "later": 1}},
    ):
        changed: dict[str, Any] = {"workload": searching.workload, **fields}
        changed["specification"] = {**stored, **changed["specification"]}
        Experiment.objects.filter(pk=searching.pk).update(**changed)
        for address in (
            "/",
            "/experiments/",
            f"/compare/?of=e:{searching.slug},e:{other.slug}",
            searching.get_absolute_url(),
            reverse("experiment-parts", args=[searching.slug]),
        ):
            assert page.get(address).status_code == 200, (fields, address)
        assert diagnosis_of(Experiment.objects.get(pk=searching.pk)).answer is not None
