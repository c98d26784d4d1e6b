"""Concurrent readers: command, recorded result, run with a real server."""

import json
import tempfile
from pathlib import Path

import pytest

from experiments.errors import OutputError
from experiments.workloads import get
from experiments.workloads.concurrent_readers import ReadersParameters

from .mpirun import run
from .samples import sample

READERS = get("concurrent-readers")
RECORDED = sample("readers-5-jobs-10-mbit.json")


def left_behind():
    """Directories of servers, wherever they may lie."""
    places = {Path(tempfile.gettempdir()), Path("/dev/shm"), Path("/var/tmp")}  # noqa: S108 (only looked at)
    return {directory for place in places for directory in place.glob("rankwire-readers-*")}


def test_it_adds_up_a_recorded_result():
    parsed = READERS.parse("", {"readers.json": RECORDED})
    figures = {name.removeprefix("concurrent-readers."): value for name, value in parsed.figures.items()}
    jobs = parsed.tables["Jobs"]
    walls = [job["wall_s"] for job in jobs]
    assert [job["job"] for job in jobs] == [0, 1, 2, 3, 4]
    assert figures["job_wall_s"] == pytest.approx(sum(walls) / 5)
    assert figures["read_bytes"] == 5 * 30 * 5 * 8192, "five jobs, thirty events of 40 000 bytes, five pages each"
    assert figures["server_throughput_bps"] == pytest.approx(8 * figures["read_bytes"] / max(walls))
    assert 0.85 * 10e6 < figures["server_throughput_bps"] < 10e6, "a link of 10 Mbit/s"
    assert figures["client_cpu_user_s"] == pytest.approx(sum(job["user_s"] for job in jobs))
    assert 0 < figures["server_cpu_max_share"] < 1
    assert {figure.id for figure in READERS.figures} == parsed.figures.keys()


def test_it_adds_ranks_of_one_host_before_it_looks_for_the_largest():
    result = json.loads(RECORDED)
    alone = READERS.parse("", {"readers.json": RECORDED}).figures["concurrent-readers.client_cpu_max_share"]
    busiest = max(result["clients"], key=lambda c: max(s["user_share"] + s["system_share"] for s in c["samples"]))
    result["clients"] = [busiest, {**busiest, "jobs": []}]
    both = READERS.parse("", {"readers.json": json.dumps(result)}).figures["concurrent-readers.client_cpu_max_share"]
    assert both == pytest.approx(2 * alone)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"server": 1, "clients": 2}'])
def test_it_refuses_what_is_not_a_result(text):
    with pytest.raises(OutputError, match=r"readers\.json"):
        READERS.parse("", {"readers.json": text})


def test_it_calls_a_run_that_wrote_nothing_unfinished():
    with pytest.raises(OutputError, match="did not reach its end"):
        READERS.parse("", {})


def test_it_writes_its_command():
    parameters = ReadersParameters(jobs=7, event_bytes="40 kB", page_bytes="8 KiB", work_s="2 ms", sample_s="1 s")
    assert " ".join(READERS.command(parameters, ranks=3)) == (
        "/usr/bin/python3 -E -s readers.py --jobs 7 --events-per-job 30 --events 400 --event-bytes 40000"
        " --page-bytes 8192 --work-s 0.002 --sample-s 1"
    )


def test_it_fills_reads_and_removes_a_real_server(tmp_path):
    parameters = ReadersParameters(
        jobs=3, events=10, events_per_job=12, event_bytes=20_000, page_bytes=8192, work_s=0.003
    )
    before = left_behind()
    parsed = run(READERS, parameters, tmp_path, ranks=3)
    assert parsed.figures["concurrent-readers.read_bytes"] == 3 * 12 * 3 * 8192
    client_cpu_s = [parsed.figures[f"concurrent-readers.client_cpu_{kind}_s"] for kind in ("user", "system")]
    assert sum(client_cpu_s) > 3 * 12 * 0.003
    assert parsed.figures["concurrent-readers.server_cpu_user_s"] >= 0
    assert [row["phase"] for row in parsed.tables["Phases"]] == ["fill", "connect", "read"]
    assert left_behind() == before
