"""Model selection and its reasons."""

from __future__ import annotations

import json

import pytest

from analysis.conclusions import Model
from analysis.scaling import Point, Study, fit_models
from tests.analysis.scaling.studies import published_water, simulated, usl_time
from tests.words import plain


def test_it_chooses_usl_where_contention_and_crosstalk_made_the_data() -> None:
    chosen = [fit_models(simulated({"elapsed_s": usl_time(100, 0.05, 0.02)}, seed=s), resamples=50) for s in range(10)]
    assert sum(c is not None and c.chosen is not None and c.chosen.model == "usl" for c in chosen) >= 8
    assert chosen[0] is not None
    assert chosen[0].criterion == "AICc"
    assert "lowest AICc" in chosen[0].reason
    assert not chosen[0].extrapolated


def test_it_chooses_no_turning_point_where_time_only_falls() -> None:
    choices = [fit_models(simulated({"elapsed_s": lambda n: 10 + 190 / n}, seed=s), resamples=50) for s in range(10)]
    assert sum(c is not None and c.chosen is not None and c.chosen.model in ("amdahl", "pmnf") for c in choices) >= 8


def test_a_constant_is_out_where_the_data_vary_and_in_where_they_do_not() -> None:
    flat = fit_models(simulated({"elapsed_s": lambda n: 100.0}, seed=1), resamples=50)
    assert flat is not None
    assert flat.chosen is not None
    assert flat.chosen.model == "constant"
    assert flat.reason.startswith(
        "No measurable change with the hosts; the mean of all predicts a left-out size to 1.2"
    )
    assert flat.best_size is None


def test_single_printed_values_are_judged_by_leave_one_out() -> None:
    cpu = fit_models(published_water(), "cpu_mean_rank_s")
    assert cpu is not None
    assert (cpu.chosen and cpu.chosen.model, cpu.criterion) == ("amdahl", "leave-one-out error")


@pytest.mark.parametrize("repetitions", [1, 3])
def test_time_that_falls_and_rises_again_gets_a_model_with_an_optimum(repetitions: int) -> None:
    turning, hosts = {"elapsed_s": usl_time(200, 0.05, 0.03)}, (1, 2, 3, 4, 6, 8, 10, 12)
    study = simulated(turning, hosts=hosts, noise=0.01, repetitions=repetitions, published=repetitions == 1)
    choice = fit_models(study, resamples=50)
    assert choice is not None
    assert choice.chosen is not None
    assert choice.chosen.model == "usl"
    assert choice.best_size is not None
    assert 3 < choice.best_size < 6
    assert "falls and then rises again" in choice.reason


def test_a_model_with_a_turn_that_predicts_worse_than_the_mean_is_not_chosen() -> None:
    choice = fit_models(published_water(), resamples=50)
    assert choice is not None
    usl, mean = choice.fit("usl"), choice.fit("constant")
    assert usl is not None
    assert mean is not None
    assert (usl.cv_error or 0) > (mean.cv_error or 0)
    assert choice.chosen is None
    assert "misses a left-out one by 17 %, their mean by 11 %" in plain(choice.reason)


def _times(**by_hosts: list[float]) -> Study:
    return Study([Point({"hosts": int(n[1:])}, {"elapsed_s": values}) for n, values in by_hosts.items()])


def test_a_constant_is_not_chosen_of_times_that_differ_though_few_repetitions_tell() -> None:
    choice = fit_models(_times(n1=[1.2, 1.3], n2=[1.4, 1.5], n4=[3.6, 3.9]), resamples=50)
    assert choice is not None
    assert choice.chosen is None
    assert choice.best_size is None
    assert not choice.extrapolated
    assert (len(choice.fits), choice.criterion) == (3, "")
    assert choice.reason == (
        "No model predicts a left-out size: "
        "3 numbers of hosts are too few to trust the error of a model that changes with them."
    )


def test_a_constant_is_not_chosen_where_scatter_hides_any_change() -> None:
    choice = fit_models(_times(n1=[1.2, 5.8], n2=[1.4, 0.5], n4=[3.6, 1.0]), resamples=50)
    assert choice is not None
    assert choice.chosen is None
    assert "shows no measurable change with the hosts, and the mean misses a left-out one by 88" in choice.reason


@pytest.mark.parametrize(("hosts", "chosen"), [((1, 2, 4), None), ((1, 2, 4, 8), "amdahl")])
def test_a_model_needs_two_sizes_more_than_it_has_parameters(hosts: tuple[int, ...], chosen: str | None) -> None:
    study = simulated({"elapsed_s": lambda n: 10 + 90 / n}, hosts=hosts, noise=0.01)
    choice = fit_models(study, resamples=50)
    assert choice is not None
    assert (choice.chosen and choice.chosen.model) == chosen


def test_four_sizes_are_too_few_to_choose_a_model_with_a_turn() -> None:
    choice = fit_models(
        simulated({"elapsed_s": usl_time(100, 0.05, 0.05)}, hosts=(1, 2, 4, 8), noise=0.01), resamples=50
    )
    assert choice is not None
    assert choice.chosen is None
    assert "4 sizes are too few to test such a model" in choice.reason


@pytest.mark.parametrize("repetitions", [1, 3])
def test_what_misses_left_out_sizes_by_more_than_their_mean_does_is_not_chosen(repetitions: int) -> None:
    jumping = simulated({"elapsed_s": lambda n: 3 if n % 4 else 1}, hosts=(1, 4, 6, 8, 10, 12), repetitions=repetitions)
    choice = fit_models(jumping, resamples=50)
    assert choice is not None
    assert choice.chosen is None
    assert "misses a left-out one by" in choice.reason
    model = Model.of(choice)
    assert (model.chosen, model.curves, len(model.fits)) == (None, (), len(choice.fits))
    assert model.to_dict()["chosen"] is None


def test_null_data_seldom_get_anything_but_a_constant() -> None:
    flat = [
        fit_models(simulated({"elapsed_s": lambda n: 10.0}, seed=s, repetitions=2), resamples=10) for s in range(100)
    ]
    assert sum(c is not None and c.chosen is not None and c.chosen.model != "constant" for c in flat) <= 5


def test_packet_metrics_are_modelled_without_the_laws_of_time() -> None:
    choice = fit_models(published_water(), "packets")
    assert choice is not None
    assert {f.model for f in choice.fits} <= {"constant", "pmnf"}


def test_weak_scaling_is_modelled_by_gustafson() -> None:
    study = simulated({"elapsed_s": lambda n: 100 * n / (n - 0.3 * (n - 1))}, noise=0.01, kind="weak")
    choice = fit_models(study, resamples=50)
    assert choice is not None
    assert choice.fit("gustafson") is not None
    assert choice.fit("amdahl") is None


def test_it_is_json_and_the_same_every_time() -> None:
    study = simulated({"elapsed_s": usl_time(100, 0.1, 0.01)})
    first, second = fit_models(study), fit_models(study)
    assert first is not None
    assert second is not None
    assert json.dumps(Model.of(first).to_dict(), allow_nan=False) == json.dumps(
        Model.of(second).to_dict(), allow_nan=False
    )


def test_nothing_to_fit_is_no_choice() -> None:
    assert fit_models(Study([])) is None
