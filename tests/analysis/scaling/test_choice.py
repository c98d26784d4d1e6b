"""Which model is shown, and why."""

from __future__ import annotations

import json

from analysis.findings import Model
from analysis.scaling import Study, fit_models
from tests.analysis.scaling.studies import published_water, simulated, usl_time


def test_it_chooses_usl_where_contention_and_crosstalk_made_the_data() -> None:
    chosen = [fit_models(simulated({"elapsed_s": usl_time(100, 0.05, 0.02)}, seed=s), resamples=50) for s in range(10)]
    assert sum(c is not None and c.chosen.model == "usl" for c in chosen) >= 8
    assert chosen[0] is not None
    assert chosen[0].criterion == "AICc"
    assert "lowest AICc" in chosen[0].reason
    assert not chosen[0].extrapolated


def test_it_chooses_no_turning_point_where_time_only_falls() -> None:
    choices = [fit_models(simulated({"elapsed_s": lambda n: 10 + 190 / n}, seed=s), resamples=50) for s in range(10)]
    assert sum(c is not None and c.chosen.model in ("amdahl", "pmnf") for c in choices) >= 8


def test_a_constant_is_out_where_the_data_vary_and_in_where_they_do_not() -> None:
    flat = fit_models(simulated({"elapsed_s": lambda n: 100.0}, seed=1), resamples=50)
    assert flat is not None
    assert flat.chosen.model == "constant"
    assert flat.best_size is None


def test_single_printed_values_are_judged_by_leave_one_out() -> None:
    cpu = fit_models(published_water(), "cpu_mean_rank_s")
    assert cpu is not None
    assert (cpu.chosen.model, cpu.criterion) == ("amdahl", "leave-one-out error")


def test_time_that_falls_and_rises_again_gets_a_model_with_an_optimum() -> None:
    choice = fit_models(published_water())
    assert choice is not None
    assert choice.chosen.model == "usl"
    assert choice.best_size is not None
    assert 3 < choice.best_size < 5
    assert "falls and then rises again" in choice.reason


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
