"""Division of the change of a time: known programs, with and without profile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.conclusions import Cause, Deciding, ExperimentQuestion
from analysis.conclusions.observations.parts import division
from analysis.conclusions.sentences import causes as words
from analysis.conclusions.wording import amount
from tests.analysis.conclusions.designs import GFLOPS, HOSTS, LOOP, TIME, asks, checked, points
from tests.analysis.conclusions.profiles import Rank, profiled, waiting
from tests.words import plain

LOOPS = {1: 10.0, 2: 6.0, 4: 9.0}
LAUNCHES = {1: 10.5, 2: 6.8, 4: 12.0}
USED = {1: 99.0, 2: 90.0, 4: 50.0}
OWN = {"deciding": LOOP, "own_time": "loop_s", "own_cpu_percent": "used_percent"}
CPU = dict.fromkeys(LOOPS, 100.0)
"""CPU time of the whole launch, not of the loop."""
ONE = [Rank(computing=1.0)]


def longer_by(question: ExperimentQuestion) -> dict[str, float]:
    """The parts of what the largest size takes longer than the smallest."""
    parts = division(question, question.points[0], question.points[-1])
    assert parts is not None
    assert sum(part.change_s for part in parts.parts) == pytest.approx(parts.change_s)
    return {part.name: part.change_s for part in parts.parts}


def cause(question: ExperimentQuestion) -> str:
    """Return the part that the head line names, with its seconds."""
    result = checked(question)
    assert _more(result.causes[0]) in result.sentence
    return result.causes[0].part


def _more(cause: Cause) -> str:
    return f"{plain(amount(cause.explains, 's'))} more "


POLLING = {1: [Rank(computing=0.6)], 2: waiting(Rank(computing=0.3), Rank(computing=0.3), window=1.3)}
SLEEPING = {
    1: [Rank(computing=0.01, blocked=0.2)],
    2: waiting(Rank(computing=0.01, blocked=0.4), Rank(computing=0.01, blocked=0.4), window=0.42),
}
UNEVEN = {
    1: waiting(Rank(computing=0.5), Rank(computing=0.5), window=0.52),
    2: waiting(Rank(computing=0.9), *[Rank(computing=0.2)] * 3, window=0.93),
}
LATE_READER = {
    1: waiting(Rank(computing=0.5), Rank(computing=0.5), window=0.52),
    2: waiting(Rank(computing=0.25, blocked=0.6), *[Rank(computing=0.25)] * 3, window=0.9, polls=False),
}
SHARED_CORES = {
    1: waiting(Rank(computing=0.5), Rank(computing=0.5), window=0.52),
    2: waiting(*[Rank(computing=0.25, descheduled=0.45)] * 4, window=0.75),
}
TAKING_TURNS = {
    1: waiting(Rank(computing=0.1), Rank(computing=0.1), window=0.12),
    2: waiting(*[Rank(computing=0.05, descheduled=0.15, blocked_inside=0.35, descheduled_inside=0.35)] * 4, window=0.8),
}
GROWING = {1: ONE, 2: waiting(Rank(computing=1.5), Rank(computing=1.5), window=1.55)}


@pytest.mark.parametrize(
    ("sizes", "part"),
    [
        pytest.param(POLLING, "communication", id="polling over a delay while computing falls"),
        pytest.param(SLEEPING, "blocked", id="sleeping"),
        pytest.param(UNEVEN, "imbalance", id="one rank computes longer, the others poll"),
        pytest.param(LATE_READER, "blocked", id="one rank reads a file, the others wait"),
        pytest.param(SHARED_CORES, "descheduled", id="more ranks than cores, long steps"),
        pytest.param(TAKING_TURNS, "descheduled", id="more ranks than cores, short steps"),
        pytest.param(GROWING, "computing", id="work that grows"),
    ],
)
def test_the_head_line_names_the_cause_of_known_programs(sizes, part):
    assert cause(profiled(sizes)) == part


def test_the_head_line_names_the_launch_overhead():
    question = profiled(
        {1: ONE, 2: waiting(Rank(computing=0.98), Rank(computing=0.98), window=1.0)}, launch={1: 0.1, 2: 0.9}
    )

    assert cause(question) == "launch"


def test_launch_overhead_that_may_be_scatter_leaves_no_smaller_cause():
    question = profiled(
        {1: ONE, 2: waiting(Rank(computing=0.9), Rank(computing=0.9), window=1.1)}, launch={1: 0.1, 2: 0.9}
    )
    question.points[0].values["elapsed_s"] = [1.0, 1.1, 1.9]

    parts = division(question, *question.points)

    assert parts is not None
    assert parts.part("communication").has_grown
    assert not parts.grown


def test_two_trials_name_the_cause_that_one_names():
    question = profiled(POLLING)
    for name, row in question.points[1].values.items():
        question.points[1].values[name] = [row[0], row[0] * 2 if name.endswith("_s") else row[0]]

    parts = division(question, *question.points[:2])

    assert parts is not None
    assert [part.name for part in parts.grown] == ["communication"]


def test_polling_is_time_in_mpi_and_computing_fell():
    changes = longer_by(profiled(POLLING))

    assert changes["communication"] == pytest.approx(1.0, rel=0.02)
    assert changes["computing"] == pytest.approx(-0.3, rel=0.02)
    result = checked(profiled(POLLING))
    assert result.sentence.endswith("1 s more in MPI.")
    assert result.causes[0].statement.endswith("in MPI, mostly on CPU (polling, copying)")


@pytest.mark.parametrize(
    ("metric", "end"),
    [
        ("chain_volume_s", "; bytes on the critical path take 800 ms at the links' rate"),
        ("chain_latency_s", "; messages on the critical path take up to 800 ms of latency"),
    ],
)
def test_time_in_mpi_that_the_links_require_is_named(metric, end):
    question = profiled(POLLING)
    question.points[1].values[metric] = [0.8, 0.8, 0.8]

    result = checked(question)

    assert result.sentence.endswith(f"1 s more in MPI{end}.")
    assert result.causes[0].statement.endswith(f"in MPI, mostly on CPU (polling, copying){end}")
    question.points[1].values[metric] = [0.3, 0.3, 0.3]
    assert checked(question).sentence.endswith("1 s more in MPI.")


def test_ranks_that_poll_with_and_without_a_core_do_both():
    shared = [Rank(computing=0.3, on_cpu=0.6, blocked_inside=0.4, descheduled_inside=0.4)] * 2

    result = checked(profiled({**POLLING, 2: shared}))

    assert result.causes[0].statement.endswith("in MPI, mostly on CPU (polling, copying), else descheduled")


def of_calls(window: float, **seconds: float) -> dict[str, list[float]]:
    """The shares of two ranks' time in MPI."""
    return {f"mpi_{kind}_share": [value / (2 * window)] * 3 for kind, value in seconds.items()}


@pytest.mark.parametrize(("collective", "named"), [(0.5, True), (0.2, False)])
def test_time_in_mpi_names_the_calls_that_take_most_of_its_growth(collective, named):
    question = profiled(POLLING)
    for point, kinds in zip(question.points, (0.0, 1.0), strict=True):
        others = {"point_to_point": 0.3 * kinds, "waiting": 0.3 * kinds}
        window = point.median("mpi_window_s")
        point.values.update(of_calls(window, collective=2 * collective * kinds * window, **others))

    result = checked(question)

    end = " (above all collective calls)" if named else ""
    assert result.sentence.endswith(f"1 s more in MPI{end}.")
    assert result.causes[0].statement.endswith(f"in MPI{end}, mostly on CPU (polling, copying)")


@pytest.mark.parametrize(
    ("least", "is_named"),
    [
        pytest.param(0.1, True, id="as long waits for the busiest rank at both sizes"),
        pytest.param(1.0, False, id="waits for the busiest rank grew: they may be in any calls"),
    ],
)
def test_time_in_mpi_names_no_calls_whose_time_did_not_grow(least, is_named):
    sizes = {
        1: waiting(Rank(computing=1.0), Rank(computing=least), window=1.05),
        2: waiting(Rank(computing=1.0), Rank(computing=0.1), window=1.45),
    }
    question = profiled(sizes)
    for point, seconds in zip(question.points, (0.1, 0.9), strict=True):
        wait_s = 0.9 if seconds > 0.5 else 1.0 - least
        point.values.update(of_calls(point.median("mpi_window_s"), collective=wait_s, point_to_point=seconds))

    statements = [cause.statement for cause in checked(question).causes if cause.part == "communication"]

    assert len(statements) == 1
    assert ("point-to-point calls" in statements[0]) is is_named
    assert "collective" not in statements[0]


def test_run_delay_inside_mpi_is_no_lack_of_cores_if_no_rank_was_delayed_at_its_work():
    pollers = waiting(
        *[Rank(computing=0.01, descheduled=0.01, blocked_inside=0.5, descheduled_inside=0.5)] * 4, window=1.1
    )

    assert cause(profiled({1: [Rank(computing=0.04)], 2: pollers})) == "communication"


def test_each_part_has_an_interval_that_holds_it():
    question = profiled(POLLING)

    parts = division(question, *question.points)

    assert parts is not None
    assert all(part.low_s is not None and part.low_s <= part.change_s <= part.high_s for part in parts.parts)


def test_a_part_that_may_not_have_grown_is_no_cause():
    question = profiled({1: ONE, 2: waiting(Rank(computing=2.0), Rank(computing=2.0), window=2.3)})
    question.points[1].values["mpi_busiest_computing_s"] = [0.2, 2.0, 3.0]
    question.points[1].values["mpi_useful_share"] = [0.1, 0.9, 1.0]

    parts = division(question, *question.points)

    assert parts is not None
    assert max(parts.parts, key=lambda part: part.change_s).name == "computing"
    assert not parts.grown, "communication surely grew, but by less than computing may have grown"


def test_the_parts_of_the_programs_own_figure_add_up_to_it():
    figure = (LOOP, {1: 0.95, 2: 1.2})
    question = profiled(POLLING | {1: ONE}, figure=figure, launch={1: 0.1, 2: 0.2})

    changes = longer_by(question)

    assert sum(changes.values()) == pytest.approx(0.25)
    assert changes["unexplained"] == pytest.approx(-0.05)
    assert "launch" not in changes
    assert cause(question) == "communication"


def test_a_figure_whose_set_up_changed_more_is_explained_by_the_window():
    figure = (LOOP, {1: 0.9, 2: 1.0})
    grown = profiled({1: ONE, 2: waiting(Rank(computing=1.5), Rank(computing=1.5), window=1.9)}, figure=figure)

    result = checked(grown)

    assert [(part.name, plain(amount(part.change_s, "s"))) for part in result.parts if part.change_s > 0] == [
        ("mpi_window_s", "900 ms"),
        ("computing", "500 ms"),
        ("communication", "400 ms"),
    ]
    assert [cause.part for cause in result.causes] == ["computing", "communication", ""]
    assert result.causes[-1].statement.startswith("at 2 hosts, 800 ms of these causes is between MPI_Init")
    assert result.sentence.endswith(": from MPI_Init to MPI_Finalize 500 ms more computing.")


def test_set_up_is_no_part_of_causes_that_are_not_named():
    figure = (LOOP, {1: 0.9, 2: 1.0})
    grown = profiled({1: ONE, 2: waiting(Rank(computing=1.5), Rank(computing=1.5), window=1.9)}, figure=figure)
    bad = grown.points[1].values
    bad["mpi_busiest_computing_s"], bad["mpi_useful_share"] = [0.2, 1.5, 3.0], [0.1, 1.5 / 1.9, 1.0]

    result = checked(grown)

    assert result.parts
    assert not [cause for cause in result.causes if cause.part]
    assert not result.causes
    assert "not explained" not in result.sentence


def test_causes_above_the_change_of_a_loop_add_up_with_set_up_and_what_fell():
    """The loop grew by 5.2 s in a window that grew by 6.8 s, while computing fell."""
    crowded = [Rank(computing=0.6, descheduled=2.7, blocked_inside=7.0, descheduled_inside=7.0)] * 4
    sizes = {1: [Rank(computing=2.2, descheduled=5.9)], 4: waiting(*crowded, window=14.9)}
    question = profiled(sizes, figure=(LOOP, {1: 6.2, 4: 11.4}))

    parts = division(question, *question.points)
    result = checked(question)

    assert parts is not None
    assert parts.exceeds_the_whole
    assert parts.outside_s == pytest.approx(1.6)
    explained = sum(part.change_s for part in (*parts.grown, *parts.fallen)) - parts.outside_s
    assert explained == pytest.approx(parts.change_s, rel=0.01)
    statements = [cause.statement for cause in result.causes if cause.part != "launch"]
    assert not any("of the" in statement.partition(" in MPI")[0] for statement in statements[:2])
    assert "1.6 s of these causes is between MPI_Init and MPI_Finalize" in plain(statements[-1])


def test_set_up_that_may_be_zero_is_no_finding():
    """The loop and its window grew by about as much; the time between them scatters."""
    question = profiled(POLLING | {1: ONE}, figure=(LOOP, {1: 0.95, 2: 1.15}))
    question.points[1].values["loop_s"] = [1.0, 1.19, 1.29]

    parts = division(question, *question.points)

    assert parts is not None
    (rest,) = [part for part in parts.parts if part.name == "unexplained"]
    assert rest.change_s < -0.02
    assert rest.low_s < 0 < rest.high_s
    assert not any("set-up" in cause.statement for cause in checked(question).causes)


def test_time_in_mpi_says_that_waits_for_cores_are_not_in_it():
    turns = {**TAKING_TURNS, 2: waiting(*[Rank(computing=0.05, descheduled=0.03, on_cpu=0.6)] * 4, window=0.8)}
    turns[2] = [replace(rank, blocked_inside=rank.blocked_inside + 0.1, descheduled_inside=0.1) for rank in turns[2]]

    (in_mpi,) = [cause for cause in checked(profiled(turns)).causes if cause.part == "communication"]

    assert "in MPI excluding waits for descheduled ranks" in in_mpi.statement


def test_less_time_in_mpi_says_that_waits_for_cores_are_not_in_it_and_names_no_calls():
    turns = {
        1: waiting(*[Rank(computing=0.05, on_cpu=0.6)] * 4, window=0.8),
        2: [Rank(computing=0.05, descheduled=0.03, on_cpu=0.2, blocked_inside=0.4, descheduled_inside=0.4)] * 4,
    }
    question = profiled(turns)
    for point in question.points:
        point.values.update(of_calls(point.median("mpi_window_s"), collective=0.1, point_to_point=0.1))
    small, large = question.points
    divided = division(question, small, large)
    assert divided is not None
    (part,) = [part for part in divided.parts if part.name == "communication"]
    assert part.change_s < 0

    statement = words.fallen(question, divided, part, large)

    assert statement.endswith("less in MPI excluding waits for descheduled ranks")


@pytest.mark.parametrize("share", [0.95, 0.3])
def test_time_in_mpi_says_that_its_ranks_were_descheduled(share):
    """Ranks that yield while they wait: nearly no run delay outside MPI."""
    waits = 1.78 * share
    crowded = [Rank(computing=0.05, blocked_inside=1.78, descheduled_inside=waits)] * 4
    result = checked(profiled({1: ONE, 2: crowded}))
    (in_mpi,) = [cause for cause in result.causes if cause.part == "communication"]

    assert in_mpi.statement.endswith(
        "mostly descheduled while waiting for messages" if share > 0.5 else "mostly blocked"
    )
    assert ("in MPI, mostly descheduled while waiting for messages" in result.sentence) == (share > 0.5)


def test_ranks_that_gave_their_cores_up_hide_no_link_that_takes_the_time():
    crowded = [Rank(computing=0.05, blocked_inside=1.78, descheduled_inside=1.7)] * 4
    question = profiled({1: ONE, 2: crowded})
    question.points[1].values["chain_volume_s"] = [1.5] * 3

    result = checked(question)

    of_links = "; bytes on the critical path take 1.5 s at the links' rate"
    assert plain(result.sentence).endswith(f"in MPI{of_links}.")
    assert plain(result.causes[0].statement).endswith(f"mostly descheduled while waiting for messages{of_links}")


def test_head_line_and_causes_name_waits_for_cores_alike():
    """Ranks were descheduled both inside MPI and at their work."""
    crowded = Rank(computing=0.05, descheduled=0.1, blocked_inside=1.7, descheduled_inside=1.7)
    result = checked(profiled({1: ONE, 2: waiting(*[crowded] * 4, window=2.0)}))

    statements = {cause.part: cause.statement for cause in result.causes}
    assert statements["communication"].endswith("more in MPI, mostly descheduled while waiting for messages")
    assert "more waiting for a CPU core to compute, " in statements["descheduled"]
    assert result.sentence.endswith("more in MPI, mostly descheduled while waiting for messages.")


def test_start_up_within_the_window_hides_no_lack_of_cores():
    """Start-up is in the window, and grew by more than half as much as the loop."""
    cores = {
        2: waiting(Rank(computing=1.3), Rank(computing=1.3), window=1.6),
        4: waiting(*[Rank(computing=0.9, descheduled=1.0)] * 4, window=2.25),
    }

    result = checked(profiled(cores, figure=(LOOP, {2: 1.27, 4: 1.64})))

    assert result.causes[0].part == "descheduled"
    assert "not explained" not in result.sentence


def test_a_loop_that_grew_in_a_shorter_window_is_not_explained():
    figure = (LOOP, {1: 0.8, 2: 1.0})
    shorter = profiled({1: [Rank(computing=1.4)], 2: waiting(*[Rank(computing=1.0)] * 2, window=1.2)}, figure=figure)

    result = checked(shorter)

    assert [cause.part for cause in result.causes if cause.part != "launch"] == [""]
    assert "not explained" in result.causes[0].statement


@pytest.mark.parametrize("deciding", [GFLOPS, Deciding("message_s", "Time of a message", "s")])
def test_a_figure_that_does_not_time_the_run_is_explained_by_the_ranks_window(deciding):
    better, worse = (2.0, 1.0) if deciding.higher_is_better else (0.01, 0.02)
    question = profiled(POLLING, figure=(deciding, {1: better, 2: worse}))

    parts = division(question, *question.points)

    assert parts is not None
    assert parts.whole.name == "mpi_window_s"
    assert cause(question) == "communication"


@pytest.mark.parametrize("share", [0.04, 0.3])
def test_a_rate_of_a_small_part_of_the_run_gets_no_cause_from_the_whole_run(share):
    part = {size: {"solution_s": share * ranks[0].useful} for size, ranks in POLLING.items()}
    more = {"solution_s": {size: times["solution_s"] for size, times in part.items()}}
    solution = Deciding("solution_s", "HPL time", "s")
    question = replace(profiled(POLLING, figure=(GFLOPS, {1: 2.0, 2: 1.0}), more=more), measured_part=solution)

    result = checked(question)

    assert result.parts == ()
    assert [(cause.part, cause.explains) for cause in result.causes] == [("", None)]
    assert "no cause visible, as HPL time is" in result.sentence


def test_a_rate_of_most_of_the_run_keeps_its_causes():
    more = {"solution_s": {1: 0.5, 2: 1.2}}
    solution = Deciding("solution_s", "HPL time", "s")
    question = replace(profiled(POLLING, figure=(GFLOPS, {1: 2.0, 2: 1.0}), more=more), measured_part=solution)

    assert cause(question) == "communication"


def test_a_trace_says_what_the_time_in_mpi_was():
    waits = {"mpi_wait_share": {1: 0.0, 2: 0.7}, "mpi_wait_under_way_share": {1: 0.0, 2: 1.0}}

    result = checked(profiled(POLLING, more=waits))

    assert "waits for data in transit" in result.causes[0].statement


def test_without_run_delay_what_is_off_the_processor_is_not_said_to_lack_a_core():
    unknown = ("mpi_descheduled_share", "mpi_descheduled_inside_share", "mpi_busiest_descheduled_s")

    assert cause(profiled(SHARED_CORES, without=unknown)) == "off"
    assert cause(profiled(UNEVEN, without=(*unknown, "mpi_busiest_computing_s"))) == "imbalance"


def test_points_of_two_versions_divide_as_far_as_both_know():
    question = profiled(SHARED_CORES)
    del question.points[0].values["mpi_busiest_descheduled_s"]
    del question.points[1].values["mpi_busiest_computing_s"][0]

    assert longer_by(question)["off"] == pytest.approx(0.45, rel=0.02)


def test_a_size_that_gains_names_what_it_lacks_to_the_ideal():
    uneven = waiting(Rank(computing=0.66), Rank(computing=0.34), window=0.67)
    question = profiled({1: ONE, 2: uneven}, launch={1: 0.01, 2: 0.01})

    result = checked(question)

    assert result.causes[0].part == "imbalance"
    assert result.causes[0].explains == pytest.approx(0.16, rel=0.05)
    assert f"{_more(result.causes[0])}than ideal waiting in MPI" in result.sentence


def test_without_a_profile_the_loss_is_on_and_off_the_cpu():
    result = checked(asks([HOSTS], LOOPS, elapsed_s=LAUNCHES, cpu_mean_rank_s=CPU, used_percent=USED, **OWN))

    assert [cause.part for cause in result.causes] == ["off_cpu", "", "launch"]
    assert result.causes[1].statement == "at 4 hosts, 900 ms less on the CPU"
    assert result.causes[0].explains == pytest.approx(4.5 - 0.6, rel=1e-3)
    assert "launch overhead" not in result.sentence


def test_the_head_line_of_a_programs_own_time_names_no_launch_overhead():
    late = {1: 10.5, 2: 6.8, 4: 19.0}

    result = checked(asks([HOSTS], LOOPS, elapsed_s=late, cpu_mean_rank_s=CPU, used_percent=USED, **OWN))

    assert result.causes[-1].explains == pytest.approx(10.0 - 0.8)
    assert result.causes[-1].statement.endswith(", outside loop time, takes 9.2 s more")
    assert result.sentence.endswith(f"{_more(result.causes[0])}off the CPU.")


def test_launch_overhead_is_a_part_of_the_elapsed_time_alone():
    chosen = OWN | {"deciding": TIME, "own_time": "used_s", "own_cpu_percent": ""}
    own_points = points([HOSTS], {1: 10.0, 2: 6.0, 4: 6.0}, deciding=LOOP)
    question = asks([HOSTS], {1: 10.5, 2: 6.5, 4: 12.0}, cpu_mean_rank_s={1: 9.0, 2: 5.0, 4: 5.0}, **chosen)
    for point, neighbour in zip(question.points, own_points, strict=True):
        point.values["used_s"] = neighbour.values["loop_s"]

    result = checked(question)

    assert [cause.part for cause in result.causes] == ["launch"]
    assert result.causes[0].explains == pytest.approx(5.5)
