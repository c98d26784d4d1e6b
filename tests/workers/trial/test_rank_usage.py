"""From the ranks' reports to the run metrics."""

from __future__ import annotations

import fcntl
import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.errors import NotPlain
from workers.trial import rank_usage
from workers.trial.rank_usage import RankUsage, ranks_on, read_rank_usage, run_metrics


def usage(rank: int, user_s: float, system_s: float, **other: int) -> RankUsage:
    fields = {"max_rss_bytes": 1000, "voluntary_switches": 10, "involuntary_switches": 1, **other}
    return RankUsage(
        rank,
        f"n{rank + 1}",
        user_s,
        system_s,
        exit_status=0,
        signal=None,
        started_ns=0,
        ended_ns=1,
        started_at=0.0,
        **fields,
    )


def test_run_metrics_are_the_catalogue_s_sums_and_ratios() -> None:
    usages = [usage(0, 1.0, 0.5), usage(1, 2.0, 0.5, max_rss_bytes=3000, voluntary_switches=4)]
    assert run_metrics(2.5, usages, ranks=2) == pytest.approx(
        {
            "elapsed_s": 2.5,
            "cpu_user_s": 3.0,
            "cpu_system_s": 1.0,
            "cpu_s": 4.0,
            "cpu_mean_rank_s": 2.0,
            "cpu_max_rank_s": 2.5,
            "cpu_imbalance": 0.25,
            "cpu_utilisation": 0.8,
            "max_rss_bytes": 3000,
            "context_switches_voluntary": 14,
            "context_switches_involuntary": 2,
        }
    )


def test_a_missing_report_leaves_only_the_elapsed_time() -> None:
    assert run_metrics(2.5, [usage(0, 1.0, 0.5)], ranks=2) == {"elapsed_s": 2.5}
    assert run_metrics(2.5, []) == {"elapsed_s": 2.5}


def test_ranks_that_used_no_measurable_time_have_no_imbalance() -> None:
    assert "cpu_imbalance" not in run_metrics(1.0, [usage(0, 0.0, 0.0)], ranks=1)


def test_reports_are_read_in_the_order_of_ranks_and_half_written_ones_are_not(tmp_path: Path) -> None:
    for rank in (10, 2):
        (tmp_path / f"rank-{rank}.json").write_text(json.dumps(vars(usage(rank, 1.0, 1.0))))
    (tmp_path / "rank-3.json.part").write_text('{"rank": 3')
    assert [report.rank for report in read_rank_usage(tmp_path)] == [2, 10]


def test_the_rank_map_names_the_ranks_of_every_host() -> None:
    placed = {0: "n2", 1: "n2", 2: "n2", 3: "n1", 4: "n1", 5: "n2", 7: "n1"}
    usages = [replace(usage(rank, 1.0, 0.0), host=host) for rank, host in reversed(placed.items())]
    assert list(ranks_on(usages).items()) == [("n2", "0-2, 5"), ("n1", "3-4, 7")]
    assert ranks_on([]) == {}


REPORT = {
    **dict.fromkeys(("max_rss_bytes", "voluntary_switches", "involuntary_switches", "started_ns", "ended_ns"), 1),
    "rank": 0,
    "host": "n1",
    "user_s": 0.5,
    "system_s": 0.5,
    "exit_status": 0,
    "signal": None,
    "started_at": 1.0,
}


@pytest.mark.parametrize(
    "written",
    [
        *("", "{}", "[]", "null", "[" * 20_000, json.dumps(REPORT).replace("0.5", "NaN")),
        *(json.dumps(REPORT).replace("0.5", number) for number in ("Infinity", "1e400", "-1.0", '"x"')),
        *(
            json.dumps({**REPORT, **changed})
            for changed in (
                *({"rank": "x"}, {"rank": -1}, {"rank": 1}, {"rank": True}, {"host": None}, {"host": "a\0b"}),
                *({"max_rss_bytes": 2**63}, {"exit_status": "x"}, {"mpi_libraries": 5}, {"mpi_world": {"a": {}}}),
            )
        ),
    ],
)
def test_report_that_no_wrapper_wrote_is_refused(tmp_path: Path, written: str) -> None:
    """Programs of a trial can write there."""
    file = tmp_path / "rank-0.json"
    file.write_text(json.dumps(REPORT))
    assert [usage.rank for usage in read_rank_usage(tmp_path)] == [0]
    file.write_text(written)
    with pytest.raises(NotPlain, match=r"rank-0\.json"):
        read_rank_usage(tmp_path)


@pytest.mark.parametrize("field", ["io", "mpi_world", "mpi_libraries"])
def test_reports_of_many_entries_are_refused(tmp_path: Path, field: str) -> None:
    """64 KB of entries took 1.3 MB of the worker's memory for each of 20 000 reports."""
    entries = {"io": {f"{number}": 0 for number in range(200)}, "mpi_libraries": ["x"] * 200}
    written = entries.get(field, {f"{number}": "" for number in range(200)})
    (tmp_path / "rank-0.json").write_text(json.dumps({**REPORT, field: written}))
    with pytest.raises(NotPlain, match="not the report of a rank"):
        read_rank_usage(tmp_path)


def test_reports_of_all_ranks_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_usage, "REPORTS_LIMIT_BYTES", 3 * len(json.dumps(REPORT)) + 2)
    for rank in range(3):
        (tmp_path / f"rank-{rank}.json").write_text(json.dumps({**REPORT, "rank": rank}))
    assert len(read_rank_usage(tmp_path)) == 3
    (tmp_path / "rank-3.json").write_text(json.dumps({**REPORT, "rank": 3}))
    with pytest.raises(NotPlain, match="is longer than"):
        read_rank_usage(tmp_path)


def test_report_that_the_program_reserves_does_not_hold_the_worker(tmp_path: Path) -> None:
    file = tmp_path / "rank-0.json"
    file.write_text(json.dumps(REPORT))
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # by which the kernel asks for the file
    with file.open("r+") as stream:
        fcntl.fcntl(stream, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        with pytest.raises(NotPlain, match="reserved by the program"):
            read_rank_usage(tmp_path)
    signal.signal(signal.SIGIO, before)
