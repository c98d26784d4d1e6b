"""The process that reads counters, beside hanging and failing sources."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.workers.hosts.trees import rapl, write
from workers.hosts.counters.__main__ import main
from workers.hosts.counters.recorder import BEGIN_LIMIT_S, END_LIMIT_S, MissingSources, Recorder
from workers.hosts.counters.source import Absent, AbsentNow, Quantity, Source
from workers.hosts.counters.sources import SOURCES


def recorded(
    root: Path, *, seconds: float = 0.1, missing: MissingSources | None = None
) -> tuple[dict[str, Any], float, float]:
    """Return the sources' reports, and how long begin and end took."""
    began = time.monotonic()
    recorder = Recorder({"n1": str(root)}, networks=True, missing=missing)
    recorder.await_begin()
    begin_s = time.monotonic() - began
    time.sleep(seconds)
    began = time.monotonic()
    recorder.end()
    while not recorder.is_done and time.monotonic() - began < 2 * END_LIMIT_S:
        recorder.drain()
        time.sleep(0.01)
    end_s = time.monotonic() - began
    recorder.close()
    os.waitpid(recorder.pid, 0)
    return recorder.sources["n1"], begin_s, end_s


def test_recorder_reports_every_source(tmp_path: Path) -> None:
    sources, _, _ = recorded(write(tmp_path, rapl("0", "package-0", 0)))
    assert set(sources) == {source.key for source in SOURCES}
    assert sources["rapl"]["state"] == "ready"
    assert sources["rapl"]["values"][0]["value"] == 0
    assert all(report["reason"] for key, report in sources.items() if key != "rapl")


def test_recorder_goes_on_without_a_hanging_source(tmp_path: Path) -> None:
    write(tmp_path, rapl("0", "package-0", 0))
    folder = tmp_path / "sys/cray/pm_counters"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "energy")  # a read of it never returns
    sources, begin_s, end_s = recorded(tmp_path)
    assert begin_s < 5 * BEGIN_LIMIT_S
    assert END_LIMIT_S <= end_s < 2 * END_LIMIT_S
    assert sources["rapl"]["values"][0]["value"] == 0
    assert sources["cray"]["state"] == "absent"
    assert "did not answer" in sources["cray"]["reason"]


def test_recorder_keeps_the_reason_of_a_failing_source(tmp_path: Path) -> None:
    write(tmp_path, {"sys/class/net/eth0/carrier": 1, "sys/class/net/eth0/type": 1})
    (tmp_path / "sys/class/net/eth0/device").mkdir()
    (tmp_path / "proc/self/mountstats").mkdir(parents=True)
    sources, _, _ = recorded(tmp_path)
    assert sources["nfs"]["reason"] == "no NFS is mounted"
    assert all("cannot be read" in row["absent"] for row in sources["ethernet"]["values"])


class Slow(Source):
    key, title, period_s = "slow", "Slow", 0.02

    def probe(self) -> None:
        self.reads = 0
        self.add(Quantity("a", "a", "1"))
        self.add(Quantity("b", "b", "W", "power"))

    def read(self) -> dict[str, float]:
        time.sleep(0.01)
        self.reads += 1
        return {"a": self.reads, "b": 100.0}


def test_recorder_reads_slow_sources_at_begin_and_end_alone(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("workers.hosts.counters.recorder.SOURCES", (Slow,))
    sources, _, _ = recorded(tmp_path, seconds=0.3)
    assert sources["slow"]["is_slow"]
    counted, power = sources["slow"]["values"]
    assert counted["value"] < 6
    assert "value" not in power
    assert power["absent"] == "it was read before and after the program alone"


def test_recorder_loses_values_whose_first_read_came_late(tmp_path: Path, monkeypatch: Any) -> None:
    def begin_late(source: Source) -> None:
        time.sleep(2 * BEGIN_LIMIT_S)
        Source.begin(source)

    monkeypatch.setattr("workers.hosts.counters.recorder.SOURCES", (Slow,))
    monkeypatch.setattr(Slow, "begin", begin_late)
    sources, _, _ = recorded(tmp_path, seconds=0.6)
    assert sources["slow"]["state"] == "ready"
    assert all("value" not in row for row in sources["slow"]["values"])
    assert "after the program's start" in sources["slow"]["values"][0]["absent"]
    monkeypatch.setattr("workers.hosts.counters.recorder.LATE_SHARE", 2.0)
    sources, _, _ = recorded(tmp_path, seconds=0.8)
    assert sources["slow"]["values"][0]["value"] > 0


def test_recorder_ends_with_its_agent() -> None:
    script = (
        "import os; from workers.hosts.counters.recorder import Recorder\n"
        "recorder = Recorder({'n1': '/'}, networks=True); recorder.await_begin(); print(recorder.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    pid = int(subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=False).stdout)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_command_prints_what_every_source_is(tmp_path: Path) -> None:
    write(tmp_path, rapl("0", "package-0", 0))
    command = [sys.executable, "-m", "workers.hosts.counters", "--root", str(tmp_path), "--seconds", "0.2"]
    said = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout
    report = json.loads(said)
    assert report["sources"]["rapl"]["details"] == "1 package, without memory"
    cost = report["cost"]
    assert cost["cpu_s"] > cost["start_and_end_s"] > 0
    assert cost["cpu_s"] == pytest.approx(cost["start_and_end_s"] + 0.2 * cost["share_of_a_core"], rel=0.2)
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "package-0: 0 J" in lines
    keys = list(report["sources"])
    assert keys == [source.key for source in SOURCES if source.key in keys]
    for wrong in (["--root", str(tmp_path / "none")], ["--seconds", "0"]):
        refused = subprocess.run([*command, *wrong], capture_output=True, text=True, check=False)
        assert (refused.returncode, wrong[0] in refused.stderr.splitlines()[-1]) == (2, True)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--root", "/proc/version"], "--root: /proc/version is no directory"),
        (["--seconds", "-1"], "--seconds: at least a moment"),
        (["--seconds", "nan"], "--seconds: at least a moment"),
        (["--seconds", "inf"], "--seconds: at least a moment"),
        (["--seconds", "soon"], "--seconds: invalid float value: 'soon'"),
        (["--seconds"], "--seconds: expected one argument"),
        (["--jsonn"], "unrecognized arguments: --jsonn"),
        (["/sys"], "unrecognized arguments: /sys"),
    ],
)
def test_command_refuses_wrong_input(wrong: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(wrong)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err.splitlines()[-1]


def test_command_prints_what_was_read_until_it_is_interrupted(tmp_path: Path) -> None:
    write(tmp_path, rapl("0", "package-0", 0))
    argv = [sys.executable, "-m", "workers.hosts.counters", "--root", str(tmp_path), "--seconds", "600", "--json"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not children.read_text():
            time.sleep(0.02)
        time.sleep(4 * BEGIN_LIMIT_S)
        process.send_signal(signal.SIGINT)
        said, complaint = process.communicate(timeout=30)
    assert (process.returncode, complaint) == (0, "")
    report = json.loads(said)
    assert 0 < report["seconds"] < 60
    assert report["sources"]["rapl"]["values"][0]["seconds"] < 60


def test_recorder_probes_a_missing_source_once(tmp_path: Path, monkeypatch: Any) -> None:
    probes = tmp_path / "probes"
    answers = {"missing": Absent("it is not installed"), "busy": AbsentNow("it did not answer")}

    def probe(source: Source) -> None:
        with probes.open("a") as file:
            file.write(f"{source.key}\n")
        raise answers[source.key]

    sources = tuple(type(key, (Source,), {"key": key, "title": key, "probe": probe}) for key in answers)
    monkeypatch.setattr("workers.hosts.counters.recorder.SOURCES", sources)
    missing: MissingSources = {}
    first, again = (recorded(tmp_path, seconds=0.0, missing=missing)[0] for _ in range(2))
    assert first == again
    assert first["missing"]["reason"] == "it is not installed"
    assert sorted(probes.read_text().split()) == ["busy", "busy", "missing"]
    monkeypatch.setattr("workers.hosts.counters.recorder.SOURCES", sources[:1])
    without_process = Recorder({"n1": str(tmp_path)}, networks=True, missing=missing)
    assert (without_process.pid, without_process.is_done) == (0, True)
    assert without_process.sources["n1"] == {"missing": first["missing"]}
