"""Time breakdown from profiles of ranks, or from CPU time without them."""

from __future__ import annotations

import pytest

from dashboard.panels.experiment.scaling import ScalingCharts
from experiments.selectors import ConfigurationRow

PROFILE = {
    "mpi_window_s": 8.0, "mpi_useful_share": 0.5, "mpi_no_core_share": 0.125, "mpi_on_cpu_share": 0.25, "mpi_blocked_share": 0.125,
}  # fmt: skip


def parts_of(*profiles: dict[str, float]) -> dict[str, list[float]]:
    rows = [
        ConfigurationRow(hosts, str(hosts), hosts, hosts, {"hosts": hosts}, values={k: [v] for k, v in values.items()})
        for hosts, values in enumerate(
            ({"elapsed_s": 10.0, "cpu_mean_rank_s": 9.5, **profile} for profile in profiles), 1
        )
    ]
    views = ScalingCharts(rows, ["hosts"], name="Measured", weak=False, diagnosis=None, published={}).time_views(())
    return {bar["name"]: bar["y"] for bar in views[0][1]["data"]}


def test_speed_up_is_against_the_smallest_size_of_the_design_before_the_first_trial() -> None:
    rows = [ConfigurationRow(n, str(n), n, n, {"hosts": n}, values={}) for n in (2, 4)]
    assert ScalingCharts(rows, ["hosts"], name="Measured").reference == 2


def test_it_stacks_the_four_shares_and_the_time_outside() -> None:
    parts = parts_of(PROFILE, PROFILE)
    assert parts["Computing"] == [4.0, 4.0]
    assert parts["In MPI, on CPU"] == [2.0, 2.0]
    assert parts["Before MPI_Init, after MPI_Finalize"] == [2.0, 2.0]
    assert sum(values[0] for values in parts.values()) == pytest.approx(10.0)


def test_it_divides_the_time_on_no_processor_if_every_size_has_run_delay() -> None:
    divided = PROFILE | {"mpi_descheduled_share": 0.1, "mpi_blocked_outside_share": 0.025}
    parts = parts_of(divided, divided)
    assert parts["Descheduled outside MPI"] == pytest.approx([0.8, 0.8])
    assert parts["Blocked outside MPI"] == pytest.approx([0.2, 0.2])
    assert "Outside MPI, off the CPU" not in parts
    assert sum(values[0] for values in parts.values()) == pytest.approx(10.0)
    assert "Outside MPI, off the CPU" in parts_of(divided, PROFILE)


def test_it_divides_the_time_off_the_cpu_in_mpi_by_run_delay() -> None:
    parts = parts_of(PROFILE | {"mpi_descheduled_inside_share": 0.1})
    assert parts["In MPI, descheduled"] == pytest.approx([0.8])
    assert parts["In MPI, blocked"] == pytest.approx([0.2])
    assert sum(values[0] for values in parts.values()) == pytest.approx(10.0)


def test_it_takes_cpu_time_where_a_size_has_no_profile() -> None:
    assert list(parts_of(PROFILE, {})) == ["On the CPU, mean of the ranks", "Off the CPU"]


def test_the_subtitle_names_no_unit_as_views_differ_in_it(page, submit, run) -> None:
    experiment = submit(repetitions=1)
    run()
    charts = [
        chart for section in page.get(experiment.get_absolute_url()).context["sections"] for chart in section.charts
    ]
    (breakdown,) = (chart for chart in charts if chart.element == "where-time-goes")
    assert [name for name, _ in breakdown.views][:2] == ["Seconds", "Share"]
    assert "%" not in breakdown.subtitle
