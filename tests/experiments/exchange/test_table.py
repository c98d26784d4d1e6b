"""External results in a CSV table with a description."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from experiments.errors import InvalidSpec
from experiments.exchange.measured import read_measured
from experiments.exchange.table import read_table
from experiments.library import load_defaults
from experiments.models import Experiment
from experiments.selectors.comparison import compare
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.experiments import factories
from tests.experiments.workloads.samples import sample

HEAD = "name: Ping-pong on Hawk\nworkload: imb\ncluster: Hawk\nparameters: {benchmark: PingPong}\n"
TABLE = """\
hosts,elapsed_s [s],output,capture,ended_at
2,12.5,imb.txt,wire.pcapng,2024-05-01T12:00:00Z

2,1.3e1,,,
4,7.5,,,
"""


@pytest.fixture
def table(tmp_path: Path, db: None, session_directory: Path) -> Path:
    """A table with its description and the files that it names."""
    load_defaults()
    (tmp_path / "imb.txt").write_text(sample("imb-mpi1-pingpong.txt"))
    start_ns = 1_700_000_000_000_000_000
    frames = [Frame.whole(start_ns + n * 1_000_000, ethernet(ipv4(tcp(seq=1 + n, flags=0x10)))) for n in range(20)]
    (tmp_path / "wire.pcapng").write_bytes(pcapng(frames))
    (tmp_path / "measured.yaml").write_text(HEAD)
    place = tmp_path / "measured.csv"
    place.write_text(TABLE)
    return place


def test_import_of_a_table_makes_a_trial_per_row(table: Path) -> None:
    output = StringIO()
    call_command("import", str(table), stdout=output)
    imported = Experiment.objects.get()
    assert f"Ping-pong on Hawk: 3 trials with 2 files. {imported.get_absolute_url()}" in output.getvalue()
    first, second, third = imported.trials.order_by("position")
    values = dict(first.measurements.filter(scope="all").values_list("metric", "value"))
    assert (values["elapsed_s"], values["packets"]) == (12.5, 20)
    assert any(name.startswith("imb.") for name in values)
    assert dict(second.measurements.values_list("metric", "value")) == {"elapsed_s": 13}
    assert (second.configuration, second.repetition, third.configuration.hosts) == (first.configuration, 2, 4)
    assert first.ended_at is not None
    own = factories.experiment(name="Own", sweep={"hosts": [2, 4]}, repetitions=1)
    factories.finished()
    factories.finished()
    person = factories.person("root", is_superuser=True)
    assert len(compare(person, [f"e:{imported.slug}", f"e:{own.slug}"]).points) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("imb.txt", "none.txt"), "line 2, column output: none.txt: No such file"),
        (("wire.pcapng", "imb.txt"), "line 2: two of its files have one name"),
        (("imb.txt,wire.pcapng", "wire.pcapng,"), "line 2, column output: "),
    ],
)
def test_import_of_a_table_reports_a_file_at_its_row(table: Path, change: tuple[str, str], words: str) -> None:
    table.write_text(TABLE.replace(*change))
    with pytest.raises(CommandError) as caught:
        call_command("import", str(table))
    assert words in str(caught.value)
    assert caught.value.returncode == 2
    assert not Experiment.objects.exists()


def test_import_of_a_table_needs_its_description(table: Path) -> None:
    table.with_suffix(".yaml").unlink()
    with pytest.raises(CommandError, match=r"A table needs measured\.yaml in its directory"):
        call_command("import", str(table))


@pytest.mark.parametrize(
    ("change", "line", "path", "words"),
    [
        (("elapsed_s [s]", "elapsed_s [ms]"), 1, "column elapsed_s [ms]", "is kept in the unit 's', not 'ms'"),
        (("elapsed_s [s]", "elapsed"), 1, "column elapsed", "a parameter is headed parameters.elapsed"),
        (("elapsed_s [s]", "figures.elapsed"), 2, "column figures.elapsed", "there is no metric"),
        (("hosts,", "hosts [1],"), 1, "column hosts [1]", "only figures have their unit"),
        (("elapsed_s [s]", "hosts"), 1, "column hosts", "is there twice"),
        (("elapsed_s [s]", ""), 1, "column 2", "is no heading"),
        (("7.5,,,", "7.5,,"), 5, "", "has 4 cells, and there are 5 columns"),
        (("7.5", "fast"), 5, "column elapsed_s [s]", "'fast' is no number"),
        (("7.5", "nan"), 5, "column elapsed_s [s]", "'nan' is no number"),
        (("7.5", "1e999"), 5, "column elapsed_s [s]", "finite"),
        (("4,7.5", "many,7.5"), 5, "column hosts", "not a whole number"),
        (("4,7.5", "4,"), 5, "", "neither figures nor an output"),
        (("T12:00:00Z", "T12:00:00"), 2, "column ended_at", "timezone"),
        (("imb.txt", "../imb.txt"), 2, "column output", "beside the description"),
        (("4,7.5", '4,"7.5'), 5, "", "is no row of comma-separated values"),
        (("4,7.5", "4\0,7.5"), 5, "column hosts", ""),
        ((TABLE, "hosts;elapsed_s\n2;3\n"), 1, "column hosts;elapsed_s", "separated by commas"),
        ((TABLE, "hosts,elapsed_s\n"), None, "", "no trial"),
        ((TABLE, "\n"), 1, "", "is empty"),
    ],
)
def test_read_table_reports_errors_at_line_and_column(
    change: tuple[str, str], line: int | None, path: str, words: str
) -> None:
    assert change[0] in TABLE
    with pytest.raises(InvalidSpec) as caught:
        read_measured(HEAD, TABLE.replace(*change))
    error = caught.value.errors[0]
    assert (error.line, error.path) == (line, path)
    assert words in error.message


@pytest.mark.parametrize(
    ("head", "line", "path", "words"),
    [
        (HEAD.replace("PingPong", "Ping"), 4, "parameters.benchmark", "in the description beside the table"),
        (f"{HEAD}trials: []\n", 5, "trials", "are in the table"),
    ],
)
def test_read_measured_reports_errors_of_the_description(head: str, line: int, path: str, words: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        read_measured(head, TABLE)
    error = caught.value.errors[0]
    assert (error.line, error.path) == (line, path)
    assert words in error.message


def test_cells_are_numbers_or_texts() -> None:
    text = '\ufeffparameters.a,parameters.b,parameters.c,parameters.d,elapsed_s\r\n1,0.5,true,"64 KiB, or\r\nso",3\r\n-7,,nan,1_0,4\r\n'
    table = read_table(text)
    assert table.trials == [
        {"parameters": {"a": 1, "b": 0.5, "c": "true", "d": "64 KiB, or\r\nso"}, "figures": {"elapsed_s": 3.0}},
        {"parameters": {"a": -7, "c": "nan", "d": "1_0"}, "figures": {"elapsed_s": 4.0}},
    ]
    assert table.lines == [2, 4]
