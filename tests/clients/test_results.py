"""Results as tables and frames, from a real server."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import polars
import pytest
from rankwire_client import Client, NotMade, NotReached, Refused
from rankwire_client.command import main

from dashboard.background.tasks import do
from experiments.models import BackgroundTask, Experiment
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("session_directory")


@pytest.fixture
def experiment(client: Client) -> Experiment:
    """Two of its four trials are complete, and one of another experiment."""
    made = factories.experiment()
    factories.finished()
    factories.finished()
    factories.experiment(name="Another")
    return made


def work(_: float) -> None:
    """Run the next background task."""
    task = BackgroundTask.claim_next()
    assert task is not None
    do(task)


def test_its_trials_are_a_frame(client: Client, experiment: Experiment) -> None:
    frame = client.frame(experiment=experiment.slug)
    assert isinstance(frame, polars.DataFrame)
    assert frame.height == 2
    assert frame["elapsed_s"].null_count() == 0
    assert "parameter.hosts" in frame.columns
    assert client.frame(rows="configurations", experiment=experiment.slug).height == 2
    assert client.frame(experiment=experiment.slug, every=True).height == 4


def test_the_tables_behind_charts_are_written(
    client: Client, experiment: Experiment, tmp_path: Path, capsys: Any
) -> None:
    assert main(["chart", experiment.slug]) == 0
    listed = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert {"time"} <= set(listed)
    assert main(["chart", experiment.slug, "time", "-o", str(tmp_path / "time.csv")]) == 0
    assert main(["chart", experiment.slug, "time"]) == 0
    printed = capsys.readouterr().out
    assert (tmp_path / "time.csv").read_bytes().decode() == printed
    assert printed.startswith("series,")
    assert len(printed.splitlines()) > 1
    waiting = experiment.trials.filter(state="queued").earliest("pk")
    assert [chart["name"] for chart in client.charts(waiting.pk)] == ["live-rate", "live-ranks"]
    assert main(["chart", f"t:{waiting.pk}", "live-rate"]) == 0
    assert main(["chart", experiment.slug, "heat"]) == 2
    assert "has no chart 'heat'" in capsys.readouterr().err
    assert main(["chart", "t:many"]) == 2


def test_the_command_writes_a_file(client: Client, experiment: Experiment, tmp_path: Path) -> None:
    target = tmp_path / "table"
    readers = {"csv": polars.read_csv, "jsonl": polars.read_ndjson, "parquet": polars.read_parquet}
    for form, read in readers.items():
        assert main(["results", experiment.slug, "--format", form, "-o", str(target)]) == 0
        assert read(target).height == 2
    assert list(tmp_path.iterdir()) == [target]


def test_the_command_prints_a_table(
    client: Client, experiment: Experiment, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["results", experiment.slug, "--every"]) == 0
    assert len(list(csv.DictReader(io.StringIO(capfdbinary.readouterr().out.decode())))) == 4


def test_a_large_table_is_waited_for(client: Client, experiment: Experiment, settings: Any) -> None:
    settings.DIRECT_EXPORT_ROWS = 0
    client._sleep = work
    assert client.frame(experiment=experiment.slug).height == 2


def test_it_says_why_a_table_was_not_made(
    client: Client, experiment: Experiment, settings: Any, tmp_path: Path
) -> None:
    def fail(_: float) -> None:
        BackgroundTask.objects.update(state=BackgroundTask.State.FAILED, message="the disk is full")

    settings.DIRECT_EXPORT_ROWS = 0
    client._sleep = fail
    with pytest.raises(NotMade, match="the disk is full"):
        client.table(tmp_path / "table.csv", experiment=experiment.slug)
    assert not list(tmp_path.iterdir())


def test_what_is_wrong_leaves_no_file(client: Client, experiment: Experiment, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="where"):
        client.table(tmp_path / "table.csv", where="hosts >")
    assert main(["results", "nowhere", "-o", str(tmp_path / "table.csv")]) == 2
    assert main(["results", experiment.slug, "-o", str(tmp_path / "no" / "table.csv")]) == 2
    assert not list(tmp_path.iterdir())


def test_a_table_that_breaks_off_never_looks_whole(
    tmp_path: Path, client: Client, experiment: Experiment, cut: Callable[[int], httpx.HTTPTransport]
) -> None:
    (tmp_path / "table.csv").write_text("of yesterday")
    with Client(transport=cut(5), sleep=lambda _: None) as unlucky, pytest.raises(NotReached):
        unlucky.table(tmp_path / "table.csv", experiment=experiment.slug)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["of yesterday"]
    with Client(transport=cut(2), sleep=lambda _: None) as lucky:
        lucky.table(tmp_path / "table.csv", experiment=experiment.slug)
    assert polars.read_csv(tmp_path / "table.csv").height == 2


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with Client("http://server", "key") as nobody, pytest.raises(ImportError, match="pandas"):
        nobody.frame(library="pandas")
