"""python -m analysis"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

import analysis
from analysis.command_line.cli import main
from analysis.packets import TCP
from analysis.traffic.legacy import CAVEATS
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.conftest import MPI_PORTS
from tests.analysis.frames import ethernet, ipv4, tcp


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    status = main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Any:
    status, out, _ = run(capsys, *arguments, "--json")
    assert status == 0
    return json.loads(out)


def test_json_is_the_librarys_dictionary(capsys: pytest.CaptureFixture[str], mpi_capture: Path) -> None:
    printed = run_json(capsys, "stats", mpi_capture, "--legacy", "--mpi-ports", "{}-{}".format(*MPI_PORTS))
    result = analysis.analyse(mpi_capture, mpi_ports=MPI_PORTS)
    assert printed.pop("legacy_2011") == result.legacy_2011()
    assert printed == json.loads(json.dumps(result.to_dict()))
    assert {"metrics", "not_available", "trust", "flows", "matrices", "series", "mpi"} <= set(printed)


def test_the_table_has_units_the_verdict_and_the_2011_report(
    capsys: pytest.CaptureFixture[str], mpi_capture: Path
) -> None:
    status, out, _ = run(capsys, "stats", mpi_capture, "--legacy", "--rtt", "0.00004")
    assert status == 0
    assert "trust good" in out
    assert "Traffic Intensity" in out
    assert all(caveat in out for caveat in CAVEATS)
    row = next(line for line in out.splitlines() if line.strip().startswith("Throughput "))
    assert row.rstrip().endswith("B/s")


def test_several_files_give_a_list(capsys: pytest.CaptureFixture[str], mpi_capture: Path, mpi_pcap: Path) -> None:
    both = run_json(capsys, "stats", mpi_capture, mpi_pcap)
    assert [one["metrics"]["wire_bytes"] for one in both] == [both[0]["metrics"]["wire_bytes"]] * 2


def test_an_unreadable_file_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "broken.pcap"
    path.write_bytes(b"nothing of the kind")
    for command in ("stats", "flows", "matrix", "series"):
        status, out, err = run(capsys, command, path)
        assert (status, out) == (2, "")
        assert err.count("\n") == 1
        assert "broken.pcap" in err


@pytest.mark.parametrize(
    "arguments", [[], ["stats"], ["stats", "x", "--mpi-ports", "9-3"], ["dissect", "x", "--frames", "0"], ["no-such"]]
)
def test_wrong_use_is_status_1(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    assert exit_info.value.code == 1
    assert "usage" in capsys.readouterr().err


def test_flows_and_matrix_and_series(capsys: pytest.CaptureFixture[str], mpi_capture: Path) -> None:
    flows = run_json(capsys, "flows", mpi_capture, "--limit", "3")["flows"]
    assert len(flows) == 3
    assert flows[0]["wire_bytes"] >= flows[1]["wire_bytes"]
    matrix = run_json(capsys, "matrix", mpi_capture)["matrix"]
    assert matrix["labels"] == [0, 1, 2]
    assert matrix["source"] == "btl_handshake"
    series = run_json(capsys, "series", mpi_capture)["series"]
    assert sum(series["packets"]) == analysis.analyse(mpi_capture).metrics["packets"]
    assert 1 < len(series["packets"]) <= 2000
    for command in ("flows", "matrix", "series"):
        status, out, _ = run(capsys, command, mpi_capture)
        assert status == 0
        assert out


def test_flows_have_inter_arrival_times_when_asked_for(capsys: pytest.CaptureFixture[str], mpi_capture: Path) -> None:
    assert "interarrival_mean_s" not in run_json(capsys, "flows", mpi_capture)["flows"][0]
    flow = run_json(capsys, "flows", mpi_capture, "--interarrival")["flows"][0]
    table = analysis.read_capture(mpi_capture)
    of_flow = (table.flow == flow["flow"]) & ((table.kind & TCP) != 0)
    from_a = of_flow & (table.sport == flow["port_a"])
    for suffix, chosen in (("", of_flow), ("_ab", from_a), ("_ba", of_flow & ~from_a)):
        gaps = np.diff(table.time_ns[chosen]) / 1e9
        assert flow[f"interarrival_mean_s{suffix}"] == pytest.approx(gaps.mean())
        assert flow[f"interarrival_p95_s{suffix}"] == pytest.approx(np.quantile(gaps, 0.95))
        assert flow[f"interarrival_cv{suffix}"] == pytest.approx(gaps.std() / gaps.mean())


def test_an_unknown_quantity_is_refused_with_the_known_ones(
    capsys: pytest.CaptureFixture[str], mpi_capture: Path
) -> None:
    status, _, err = run(capsys, "matrix", mpi_capture, "--quantity", "colour")
    assert status == 1
    assert "payload_bytes" in err


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_packets_are_written_one_row_per_frame(
    capsys: pytest.CaptureFixture[str], mpi_capture: Path, tmp_path: Path, suffix: str
) -> None:
    output = tmp_path / f"packets.{suffix}"
    assert run(capsys, "packets", mpi_capture, output)[0] == 0
    table = analysis.read_capture(mpi_capture)
    if suffix == "csv":
        with output.open() as file:
            rows = list(csv.DictReader(file))
    else:
        rows = [{k: str(v) for k, v in row.items()} for row in pyarrow.parquet.read_table(output).to_pylist()]
    assert len(rows) == len(table)
    assert [int(row["time_ns"]) for row in rows] == table.time_ns.tolist()
    assert rows[0]["src"] == table.hosts[table.src[0]]


def test_packets_refuses_other_formats(capsys: pytest.CaptureFixture[str], mpi_capture: Path, tmp_path: Path) -> None:
    status, _, err = run(capsys, "packets", mpi_capture, tmp_path / "packets.xlsx")
    assert status == 1
    assert ".parquet or .csv" in err


def test_a_capture_without_packets_can_be_shown_and_exported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(files.pcap([]))
    for command in (["stats", path], ["flows", path], ["matrix", path], ["series", path], ["compare", path, path]):
        assert run(capsys, *command)[0] == 0
    assert run(capsys, "packets", path, tmp_path / "none.parquet")[0] == 0
    assert pyarrow.parquet.read_table(tmp_path / "none.parquet").num_rows == 0


def test_compare_puts_two_captures_side_by_side(
    capsys: pytest.CaptureFixture[str], mpi_capture: Path, mpi_pcap: Path
) -> None:
    printed = run_json(capsys, "compare", mpi_capture, mpi_pcap)
    assert printed["ratio"]["packets"] == 1
    assert printed["a"]["metrics"]["payload_bytes"] == printed["b"]["metrics"]["payload_bytes"]
    _, out, _ = run(capsys, "compare", mpi_capture, mpi_pcap)
    assert "B / A" in out


def test_dissect_prints_the_frames_asked_for(capsys: pytest.CaptureFixture[str], mpi_capture: Path) -> None:
    frames = run_json(capsys, "dissect", mpi_capture, "--frames", "2-3")
    assert len(frames) == 2
    status, _, err = run(capsys, "dissect", mpi_capture, "--filter", "no such filter (")
    assert status == 2
    assert err.count("\n") == 1


def test_the_reader_of_a_pipe_may_leave_early(mpi_capture: Path) -> None:
    argv = [sys.executable, "-m", "analysis", "series", str(mpi_capture)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(30) == 0
    process.stderr.close()


def test_connections_that_only_one_side_speaks_on_have_their_inter_arrival_times(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "one_way.pcap"
    path.write_bytes(files.pcap([Frame.whole(10**15 + k * 10**6, ethernet(ipv4(tcp(seq=k)))) for k in range(4)]))
    flow = run_json(capsys, "flows", path, "--interarrival")["flows"][0]
    assert flow["interarrival_mean_s_ab"] == flow["interarrival_mean_s"] == pytest.approx(1e-3)
    assert "interarrival_mean_s_ba" not in flow
