"""Time of every rank of a trial by state, as stacked bars."""

from __future__ import annotations

import pytest

from dashboard.charts.ranks import dot_per_rank, message_sizes, time_per_rank

RANK = {
    "rank": 0, "host": "n1", "window_s": 10.0, "computing_s": 4.0, "no_core_s": 3.0, "on_cpu_s": 2.0, "blocked_s": 1.0,
}  # fmt: skip
SPLIT = RANK | {"rank": 1, "descheduled_s": 1.0, "blocked_outside_s": 2.0, "descheduled_inside_s": 0.5}


@pytest.mark.parametrize(
    ("ranks", "names"),
    [
        (
            [SPLIT, SPLIT],
            [
                "Computing",
                "Descheduled outside MPI",
                "Blocked outside MPI",
                "In MPI, on CPU",
                "In MPI, descheduled",
                "In MPI, blocked",
            ],
        ),
        ([SPLIT, RANK], ["Computing", "Outside MPI, off the CPU", "In MPI, on CPU", "In MPI, off the CPU"]),
    ],
    ids=["run delay is known", "a rank of an older version"],
)
def test_the_parts_of_a_rank_add_up_to_its_window(ranks, names):
    bars = time_per_rank(ranks)["data"]

    assert [bar["name"] for bar in bars] == names
    assert all(host.endswith(", n1") for bar in bars for host in bar["x"])
    assert sum(bar["y"][0] for bar in bars) == pytest.approx(10.0)
    assert len({bar["marker"]["line"]["color"] for bar in bars}) == len(names)
    assert [bar["name"] for bar in bars if "pattern" in bar["marker"]] == [n for n in names if n == "In MPI, blocked"]


def test_message_sizes_have_a_bar_only_for_what_was_sent():
    counts = [0] * 66
    counts[14], counts[16] = 5, 7
    figure = message_sizes({"point_to_point": counts, "collective": [0] * 66})
    (bars,) = figure["data"]
    assert (bars["name"], bars["x"], bars["y"]) == ("Point-to-point", ["8 KiB", "16 KiB", "32 KiB"], [5, None, 7])
    both = message_sizes({"point_to_point": counts, "collective": [3, *[0] * 65]})
    assert [trace["y"][0] for trace in both["data"]] == [None, 3]
    assert both["layout"]["barmode"] == "stack"


def test_ranks_that_share_a_core_are_squares_of_their_own_trace():
    facts = {"quantity": "Instructions per cycle", "unit": ""}
    ranks, hosts, values = [0, 1, 2, 3], ["n1", "n1", "n2", "n2"], [1.5, 0.9, 1.6, 0.8]
    figure = dot_per_rank(ranks, hosts, values, sharing={1, 3}, **facts)
    alone, shared = figure["data"]
    assert (alone["name"], alone["x"], alone["y"]) == ("Own core", [0, 2], [1.5, 1.6])
    assert (shared["name"], shared["x"], shared["y"]) == ("Shared core", [1, 3], [0.9, 0.8])
    assert (alone["marker"].get("symbol"), shared["marker"]["symbol"]) == (None, "square")
    assert "shared core" in shared["hovertemplate"]
    assert figure["layout"]["showlegend"]
    (every_rank,) = dot_per_rank(ranks, hosts, values, **facts)["data"]
    assert every_rank["name"] == "Instructions per cycle"
    (squares,) = dot_per_rank(ranks, hosts, values, sharing=set(ranks), **facts)["data"]
    assert squares["name"] == "Shared core"
