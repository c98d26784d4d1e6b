"""From a specification to configurations and ordered trials."""

from typing import Any

import pytest

from experiments.errors import InvalidSpec
from experiments.specification import ExperimentSpec, parse, restore
from experiments.specification.design import Design, configuration_hash, expand, first_point
from experiments.specification.launch_plan import plan_launch
from tests.experiments.specifications import specification


def points(spec: ExperimentSpec, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(c.parameters[name] for name in names) for c in expand(spec).configurations]


def order(plan: Design) -> list[tuple[int, str, int]]:
    return [(trial.configuration, trial.kind, trial.repetition) for trial in plan.trials]


def test_it_combines_every_value_with_every_other_the_last_changing_fastest() -> None:
    spec = specification(sweep={"hosts": [1, 2], "ranks_per_host": "1..4 x2"})
    assert points(spec, "hosts", "ranks_per_host") == [(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 4)]


def test_it_advances_grouped_parameters_together() -> None:
    spec = specification(
        parameters={}, sweep={"hosts": [1, 2], "ranks_per_host": [4, 2], "steps": [10, 20]}, zip=[["hosts", "steps"]]
    )
    assert points(spec, "hosts", "ranks_per_host", "steps") == [(1, 4, 10), (1, 2, 10), (2, 4, 20), (2, 2, 20)]


def test_it_keeps_only_what_the_filter_keeps() -> None:
    spec = specification(sweep={"hosts": "1..4", "ranks_per_host": "1..4"}, where="hosts * ranks_per_host == 4")
    assert points(spec, "hosts", "ranks_per_host") == [(1, 4), (2, 2), (4, 1)]


def test_it_takes_ranges_with_units_for_the_values_they_mean() -> None:
    def delays(written: Any) -> list[tuple[Any, ...]]:
        return points(specification(sweep={"link.delay": written, "link.mtu": "1..8 x2 KiB"}), "link.delay", "link.mtu")

    assert delays("1 ms..16 ms x4") == delays([0.001, "4 ms", "0.016 s"])
    assert {mtu for _, mtu in delays("1 ms")} == {1024, 2048, 4096, 8192}


def test_it_filters_by_ranks_and_by_quantities_of_the_link_and_the_workload() -> None:
    swept = {"hosts": "1..4", "ranks_per_host": "1..4", "link.delay": "0..8 ms step 4"}
    spec = specification(sweep=swept, where="ranks == 6 and link.delay in (0 ms, 8 ms)")
    assert points(spec, "hosts", "ranks_per_host", "link.delay") == [(2, 3, 0), (2, 3, 0.008), (3, 2, 0), (3, 2, 0.008)]
    assert "ranks" not in expand(spec).configurations[0].parameters
    sizes = {"hosts": [2], "message_bytes": "1 KiB..1 MiB x4", "time_per_size": ["500 ms", "2 s"]}
    spec = specification(
        workload="pingpong", parameters={}, sweep=sizes, where="message_bytes > 64 KiB and time_per_size < 1 s"
    )
    assert points(spec, "message_bytes", "time_per_size") == [(2**18, 0.5), (2**20, 0.5)]


def test_it_writes_every_parameter_in_base_units_defaults_included() -> None:
    spec = specification(sweep={"link.delay": ["2 ms"]}, link={"bandwidth": "300 Mbit/s", "jitter": "1 ms"})
    assert dict(expand(spec).configurations[0].parameters) == {
        "hosts": 1,
        "ranks_per_host": 1,
        "molecules": 64,
        "steps": 10,
        "temperature": 300.0,
        "link.bandwidth": 3e8,
        "link.delay": 0.002,
        "link.jitter": 0.001,
        "link.loss": 0.0,
        "link.mtu": 1500,
        "link.distribution": "uniform",
        "link.loss_burst": 1.0,
        "link.queue": None,
        "link.topology": "one site",
        "link.rates": "",
        "link.congestion_control": None,
        "link.tcp_buffer": None,
        "link.emulator": "auto",
    }


def test_it_runs_configuration_after_configuration_when_sequential() -> None:
    plan = expand(specification(order="sequential", warmups=1, repetitions=2))
    assert order(plan) == [
        *((0, "warmup", 1), (0, "measured", 1), (0, "measured", 2)),
        *((1, "warmup", 1), (1, "measured", 1), (1, "measured", 2)),
    ]


def test_it_runs_in_rounds_when_interleaved_with_controls_beside_each_repetition() -> None:
    plan = expand(specification(order="interleaved", warmups=1, control=True, repetitions=2))
    assert order(plan) == [
        *((0, "warmup", 1), (1, "warmup", 1)),
        *((0, "measured", 1), (1, "measured", 1)),
        *((0, "control", 1), (1, "control", 1)),
        *((1, "control", 2), (0, "control", 2)),
        *((1, "measured", 2), (0, "measured", 2)),
    ]


@pytest.mark.parametrize(
    ("control", "kinds"),
    [(1, "mcmmm"), (2, "mcmmcm"), (4, "mccmmccm"), (6, "mcccmmcccm"), (True, "mccmmccm"), (0, "mmmm")],
)
def test_it_spreads_controls_over_the_repetitions(control: int, kinds: str) -> None:
    plan = expand(specification(order="sequential", control=control, repetitions=4, sweep={"hosts": [2]}))
    assert "".join(trial.kind[0] for trial in plan.trials) == kinds
    numbers = [trial.repetition for trial in plan.trials if trial.kind == "control"]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


def test_a_stored_true_is_one_control_run() -> None:
    stored = specification(repetitions=4).to_dict() | {"control": True}
    assert restore(stored).controls == 1
    assert parse(stored).controls == 4
    assert restore(parse(stored).to_dict()) == parse(stored)


def test_interleaved_rounds_alternate_their_direction_so_that_a_drift_cancels() -> None:
    plan = expand(specification(order="interleaved", sweep={"hosts": "1..5"}, repetitions=4))
    places: dict[int, list[int]] = {}
    for index, trial in enumerate(plan.trials):
        places.setdefault(trial.configuration, []).append(index)
    assert {sum(positions) for positions in places.values()} == {38}


def test_it_shuffles_each_round_by_the_seed_alone() -> None:
    def randomised(seed: int) -> list[tuple[int, str, int]]:
        return order(expand(specification(order="randomised", seed=seed, sweep={"hosts": "1..8"}, repetitions=3)))

    first = randomised(2007)
    assert first == randomised(2007)
    assert first != randomised(2008)
    rounds = [[configuration for configuration, _, k in first if k == repetition] for repetition in (1, 2, 3)]
    assert all(sorted(round) == list(range(8)) for round in rounds)
    assert [k for _, _, k in first] == [1] * 8 + [2] * 8 + [3] * 8
    # Pinned: a stored seed must give the stored order for ever.
    assert rounds[0] == PINNED_FIRST_ROUND


def test_its_first_point_is_that_of_its_first_configuration() -> None:
    spec = specification(sweep={"hosts": "4, 2, 1", "ranks_per_host": [3, 1]}, where="hosts < 4")
    assert first_point(spec) == expand(spec).configurations[0].parameters
    assert (first_point(spec)["hosts"], first_point(spec)["ranks_per_host"]) == (2, 3)


def test_launch_plan_has_the_program_of_a_rank_and_the_link_or_an_ideal_one() -> None:
    slow = expand(specification(sweep={"hosts": [2]}, link={"delay": "5 ms"})).configurations[0]
    launch = plan_launch("water", slow.parameters)
    assert (launch.program, launch.hosts) == (("lmp", "-in", "in.water", "-log", "none"), 2)
    assert launch.link.delay_s == 0.005
    assert plan_launch("water", slow.parameters, is_ideal=True).link.delay_s == 0


def test_it_hashes_equal_points_equally_however_they_are_written() -> None:
    def hashes(**changes: Any) -> list[str]:
        return [c.hash for c in expand(specification(**changes)).configurations]

    assert hashes(sweep={"link.delay": ["2 ms"]}) == hashes(sweep={}, link={"delay": 0.002})
    assert hashes(sweep={"hosts": "1..2"}) == hashes(sweep={"hosts": [1, 2]}, repetitions=9, name="Other")
    assert len(set(hashes(sweep={"hosts": "1..9"}))) == 9
    assert configuration_hash("water", {"a": 1.0, "b": 2}) == configuration_hash("water", {"b": 2, "a": 1})
    assert configuration_hash("water", {"a": 1}) != configuration_hash("fire", {"a": 1})


@pytest.mark.parametrize("deciding", ["water.ns_per_day", "cpu_s", "retransmitted_segments"])
def test_expand_ignores_the_deciding_metric(deciding: str) -> None:
    assert expand(specification(deciding=deciding)) == expand(specification())


def test_it_never_changes_a_hash_that_is_stored() -> None:
    assert expand(specification(sweep={"hosts": [4]})).configurations[0].hash == PINNED_HASH


def test_it_keeps_the_hash_of_a_configuration_stored_before_a_link_parameter_existed() -> None:
    (plan,) = expand(specification(sweep={"hosts": [4]})).configurations
    stored = {name: value for name, value in plan.parameters.items() if name not in LATER_LINK_PARAMETERS}
    assert len(stored) == len(plan.parameters) - len(LATER_LINK_PARAMETERS)
    assert configuration_hash("water", stored) == plan.hash
    for name, value in LATER_LINK_PARAMETERS.items():
        assert configuration_hash("water", {**plan.parameters, name: value}) != plan.hash


PINNED_FIRST_ROUND = [4, 1, 2, 7, 0, 5, 6, 3]
LATER_LINK_PARAMETERS = {
    "link.distribution": "normal",
    "link.loss_burst": 2.0,
    "link.queue": 65536,
    "link.topology": "star",
    "link.rates": "1000000000",
    "link.congestion_control": "reno",
    "link.tcp_buffer": 65536,
    "link.emulator": "netem",
}
PINNED_HASH = "d32dc82a2c701006f7c024140a1c4ba721fcf8b4f22a7b8c491a304bc9f54ad8"


@pytest.mark.parametrize("workload", ["ring", "pingpong", "netpipe"])
def test_too_few_ranks_on_one_host_are_an_error_of_the_swept_ranks(workload: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        parse({"name": "One host", "workload": workload, "sweep": {"ranks_per_host": [1, 2]}, "cluster": "local"})
    assert refused.value.by_path().keys() == {"sweep.ranks_per_host"}
