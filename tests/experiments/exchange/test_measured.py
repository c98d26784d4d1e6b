"""External results with a description: our parsers and our decoder read them."""

from __future__ import annotations

import textwrap
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from experiments.errors import InvalidSpec
from experiments.exchange.external_results import import_description
from experiments.exchange.measured import read_measured
from experiments.files import read_analysis
from experiments.library import load_defaults
from experiments.models import Artifact, Cluster, Experiment, Trial, Usage
from experiments.reparse import candidates
from tests.analysis.capture_files import Frame, pcap, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.experiments.workloads.samples import sample

DESCRIPTION = """
    name: Ping-pong on Hawk
    workload: imb
    cluster: Hawk
    source: A. Nother, 2024
    licence: CC-BY-4.0
    parameters: {benchmark: PingPong, hosts: 2}
    trials:
      - output: imb.txt
        capture: wire.pcapng
        ended_at: 2024-05-01T12:00:00Z
      - figures: {elapsed_s: 12.5}
      - parameters: {hosts: 4}
        figures: {elapsed_s: 7.5}
"""


@pytest.fixture
def described(tmp_path: Path, db: None, session_directory: Path) -> Path:
    """A description with the files that it names."""
    load_defaults()
    (tmp_path / "imb.txt").write_text(sample("imb-mpi1-pingpong.txt"))
    frames = [
        Frame.whole(1_700_000_000_000_000_000 + n * 1_000_000, ethernet(ipv4(tcp(seq=1 + n, flags=0x10))))
        for n in range(20)
    ]
    (tmp_path / "wire.pcapng").write_bytes(pcapng(frames))
    return written(tmp_path, DESCRIPTION)


def written(directory: Path, text: str) -> Path:
    path = directory / "measured.yaml"
    path.write_text(textwrap.dedent(text))
    return path


def test_outputs_and_captures_become_measurements(described: Path) -> None:
    arrival = import_description(described, project=load_defaults())
    experiment = Experiment.objects.get()
    assert (arrival.trials, arrival.files, arrival.stored) == (3, 2, experiment)
    first, second, third = experiment.trials.order_by("position")
    values = dict(first.measurements.filter(scope="all").values_list("metric", "value"))
    assert values["packets"] == 20
    assert any(name.startswith("imb.") for name in values)
    assert first.tables
    assert first.trust
    assert first.ended_at is not None
    assert first.ended_at.year == 2024
    analysis = read_analysis(first)
    assert analysis is not None
    assert sum(analysis["series"]["packets"]) == 20
    assert dict(second.measurements.values_list("metric", "value")) == {"elapsed_s": 12.5}
    assert second.not_available["packets"] == "it was imported without a capture"
    assert (second.configuration, second.repetition, third.configuration.hosts) == (first.configuration, 2, 4)
    assert {a.name for a in first.artifacts.all()} == {"imb.txt", "wire.pcapng", "analysis.json.zst"}
    for artifact in Artifact.objects.all():
        assert artifact.content()
        assert artifact.file.parent == Path(settings.VAR) / "trials" / str(artifact.trial_id)


def test_it_is_marked_and_never_run(described: Path) -> None:
    import_description(described, project=load_defaults())
    experiment, cluster = Experiment.objects.get(), Cluster.objects.get(elsewhere=True)
    assert experiment.origin["source"] == "A. Nother, 2024"
    assert (experiment.is_imported, experiment.cluster, cluster.name, cluster.enabled) == (True, cluster, "Hawk", False)
    assert not Usage.objects.exists()
    assert not candidates().exists(), "its outputs are not read again"


def test_a_dry_run_reads_all_and_stores_nothing(described: Path) -> None:
    output = StringIO()
    call_command("import", str(described), dry_run=True, stdout=output)
    assert "Ping-pong on Hawk: 3 trials with 2 files." in output.getvalue()
    assert not Experiment.objects.exists()
    (described.parent / "imb.txt").write_text("nothing of IMB")
    with pytest.raises(CommandError, match=r"trials\.0\.output") as caught:
        call_command("import", str(described), dry_run=True)
    assert caught.value.returncode == 2


@pytest.mark.parametrize(
    ("change", "path", "words", "line"),
    [
        (("workload: imb", "workload: none-such"), "trials.0.output", "is not known here", 9),
        (("elapsed_s: 12.5", "elapsed_z: 12.5"), "trials.1.figures.elapsed_z", "there is no metric", 12),
        (("imb.txt", "../imb.txt"), "trials.0.output", "beside the description", 9),
        (("hosts: 4", "hosts: many"), "trials.2.parameters.hosts", "not a whole number", 13),
        (("benchmark: PingPong", "benchmark: Ping"), "parameters.benchmark", "", 7),
        (("figures: {elapsed_s: 12.5}", "command: [ls]"), "trials.1", "neither figures nor an output", 12),
        (("cluster: Hawk", "clusters: Hawk"), "cluster", "", None),
        (("2024-05-01T12:00:00Z", "2024-05-01T12:00:00"), "trials.0.ended_at", "", 11),
        (("elapsed_s: 7.5", "elapsed_s: .inf"), "trials.2.figures.elapsed_s", "", 14),
    ],
)
def test_read_measured_reports_errors_at_field_and_line(
    change: tuple[str, str], path: str, words: str, line: int | None
) -> None:
    with pytest.raises(InvalidSpec) as caught:
        read_measured(textwrap.dedent(DESCRIPTION).replace(*change))
    error = next(error for error in caught.value.errors if error.path == path)
    assert words in error.message
    if line is not None:
        assert error.line == line


def test_import_description_reports_an_unusable_file_at_its_field(described: Path) -> None:
    (described.parent / "wire.pcapng").unlink()
    with pytest.raises(InvalidSpec, match=r"trials\.0\.capture: wire\.pcapng: No such file"):
        import_description(described, project=load_defaults())
    (described.parent / "wire.pcapng").write_bytes(b"no packets at all")
    with pytest.raises(InvalidSpec, match=r"trials\.0\.capture: wire\.pcapng: .*neither pcap nor pcapng"):
        import_description(described, project=load_defaults())
    (described.parent / "wire.pcapng").write_bytes(pcap([Frame.whole(1, bytes(60))], link=9))
    with pytest.raises(
        InvalidSpec, match=r"trials\.0\.capture: wire\.pcapng: unsupported link type 9 \(PPP\): use --decoder pyshark"
    ):
        import_description(described, project=load_defaults())
    assert not Experiment.objects.exists()


def test_a_figure_that_contradicts_its_output_is_refused(described: Path) -> None:
    import_description(described, project=load_defaults())
    name, value = (
        Trial.objects.get(position=1).measurements.filter(metric__startswith="imb.").values_list("metric", "value")[0]
    )
    written(
        described.parent,
        DESCRIPTION.replace("        capture: wire.pcapng", f"        figures: {{{name}: {value + 1}}}"),
    )
    with pytest.raises(InvalidSpec, match="the output says"):
        import_description(described, project=load_defaults())
