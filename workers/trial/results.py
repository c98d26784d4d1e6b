"""Results of a trial: metrics of run and packets, figures of merit, files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from django.conf import settings

import analysis
from analysis.catalogue import METRICS
from analysis.mpi.calls import to_bytes
from analysis.mpi.transports import sentence
from analysis.numbers import amount, plural
from analysis.traffic.legacy import CAVEATS as LEGACY_CAVEATS
from analysis.trust_level import TrustLevel, worst
from experiments import cluster_kinds
from experiments.common import plain_files
from experiments.errors import NotPlain, OutputError
from experiments.files import (
    ANALYSIS_NAME,
    COUNTERS_NAME,
    MEASURED_NAME,
    MPI_CALLS_NAME,
    MPI_PROFILE_NAME,
    write_analysis,
    write_measured,
)
from experiments.metrics import deciding_metric, find
from experiments.models import METRIC_SOURCES, Artifact, TrialResult
from experiments.specification import Link
from experiments.workloads import Parsed
from workers.errors import TrialFailed
from workers.hosts.sampling import stored_shares
from workers.launchers import BTL_PORTS
from workers.trial import written
from workers.trial.counters import counter_metrics
from workers.trial.failure import with_output
from workers.trial.inside_mpi import LEAST_BYTES, Explained, explain_waits, no_waits, sent_between_hosts, why_unseen
from workers.trial.measure import Measured, TrialRun
from workers.trial.rank_usage import ranks_on, run_metrics

_SILENT_WORLD: Final = (
    "no MPI message was seen between the hosts, and whether the ranks ran in one world could not be checked: "
    "each may have run alone"
)
_ON_STDERR: Final = ": found on standard error; only standard output is read"
_PACKET_METRICS: Final = tuple(m.id for m in METRICS.values() if m.section in ("volume", "interarrival", "tcp"))
"""Metrics that need a capture."""


@dataclass(slots=True)
class _Packets:
    """Result of the capture, or why there is none."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    mpi_metrics: Mapping[str, float] = field(default_factory=dict)
    not_available: Mapping[str, str] = field(default_factory=dict)
    trust: str = ""
    reasons: tuple[str, ...] = ()
    mpi_packets: float = 0.0


class RefusedOutput(OutputError):
    """The parser refused the output; ``artifacts`` hold all measurements."""

    def __init__(self, message: str, artifacts: Sequence[Artifact]) -> None:
        super().__init__(message)
        self.artifacts = artifacts


def collect(run: TrialRun, measured: Measured) -> TrialResult:
    """Decode, compute and parse; return everything for one transaction.

    Raise RefusedOutput, NotPlain or TrialFailed.
    """
    _shorten_output(run)
    output = _text(run.stdout)
    files = written.texts_of(run.directory / "work", run.plan.workload.outputs)
    try:
        parsed = _parsed(run, output, files)
    except OutputError as error:
        elsewhere = _ON_STDERR if _is_on_stderr(run, output, files) else ""
        message = with_output(f"{error}{elsewhere}.", stdout=run.stdout, stderr=run.stderr)
        raise RefusedOutput(message, _keep_unread(run, measured)) from None
    return _result(run, measured, parsed)


def _text(printed: Path) -> str:
    return plain_files.read_text(printed, limit_bytes=2 * settings.OUTPUT_LIMIT_BYTES)


def _parsed(run: TrialRun, output: str, files: Mapping[str, str]) -> Parsed:
    return run.plan.workload.read(output, files, {**run.plan.parameters, "ranks": run.plan.ranks})


def _is_on_stderr(run: TrialRun, output: str, files: Mapping[str, str]) -> bool:
    """Return whether the output could be read if standard error belonged to it."""
    try:
        _parsed(run, f"{output}\n{_text(run.stderr)}", files)
    except (OutputError, NotPlain):
        return False
    return True


def _shorten_output(run: TrialRun) -> None:
    for printed in (run.stdout, run.stderr):
        try:
            plain_files.shorten(printed, limit_bytes=settings.OUTPUT_LIMIT_BYTES)
        except FileNotFoundError:
            raise TrialFailed(f"{printed.name} was removed while the trial ran.") from None


def _result(run: TrialRun, measured: Measured, parsed: Parsed) -> TrialResult:
    packets = _analyse(run, measured)
    of_waits, no_waits, waits = _waits(run, measured)
    counters = counter_metrics(
        measured.counted,
        elapsed_s=measured.elapsed_s,
        rate=_deciding_rate(run, parsed),
        tables=measured.inside.tables,
        usages=measured.usages,
    )
    of_the_run = {
        **counters.values,
        **run_metrics(measured.elapsed_s, measured.usages, run.plan.ranks),
        **run.plan.workload.outside_its_work(measured.elapsed_s, parsed.figures),
    }
    return TrialResult(
        measurements={
            "all": {**of_the_run, **measured.inside.metrics, **of_waits, **packets.metrics, **parsed.figures},
            "mpi": packets.mpi_metrics,
        },
        not_available={**counters.absent, **no_waits, **measured.inside.not_available, **packets.not_available},
        trust=worst(packets.trust, TrustLevel.DEGRADED if measured.link_reasons or measured.disturbances else ""),
        trust_reasons=(*measured.link_reasons, *measured.disturbances, *packets.reasons),
        environment=measured.environment,
        conditions={
            "ranks_on": ranks_on(measured.usages),
            **_world(run, measured, packets),
            **({"messages_by": sentence(measured.inside.transport)} if run.plan.ranks > 1 else {}),
            **({"placement": measured.inside.places} if measured.inside.places else {}),
            **({"placement_findings": dict(measured.inside.misplaced)} if measured.inside.misplaced else {}),
            **({"mpi_tools": list(measured.inside.tools)} if measured.inside.tools else {}),
            **({"joined": measured.recorded.joined.to_dict()} if measured.recorded.joined else {}),
            **({METRIC_SOURCES: counters.by_source()} if counters.provenance else {}),
            **({"not_recorded": list(measured.recorded.not_recorded)} if measured.recorded.not_recorded else {}),
            **({"disturbances": list(measured.disturbances)} if measured.disturbances else {}),
        },
        artifacts=_keep_files(run, measured, waits),
        tables=parsed.tables,
    )


def _deciding_rate(run: TrialRun, parsed: Parsed) -> float | None:
    """Return the deciding metric, else the workload's own; None if neither is a rate."""
    names = (deciding_metric(run.plan.workload.slug, run.specification), run.plan.workload.decides)
    rates = [name for name in names if name in parsed.figures and find(name, run.specification).unit.endswith("/s")]
    return parsed.figures[rates[0]] if rates else None


def _world(run: TrialRun, measured: Measured, packets: _Packets) -> dict[str, str]:
    """Return the ranks' world; several hosts are expected to send messages."""
    summary = measured.world.summary
    if summary and run.plan.hosts > 1 and measured.recorded.report is not None and not packets.mpi_packets:
        summary += "; no MPI message was seen between the hosts"
    return {"world": summary} if summary else {}


def _mpi_packets(measured: Measured, result: analysis.CaptureAnalysis) -> float:
    """Return packets of MPI; all packets if ports do not identify MPI."""
    scope = result.mpi if measured.known_ports else result
    return scope.metrics.get("packets", 0.0)


def _keep_unread(run: TrialRun, measured: Measured) -> Sequence[Artifact]:
    try:
        result = _result(run, measured, Parsed({}))
    except TrialFailed:
        return ()  # the capture cannot be read either: there is nothing to add figures of merit to
    file = run.directory / MEASURED_NAME
    write_measured(file, result)
    return [*result.artifacts, Artifact.describe(run.trial.pk, Artifact.Kind.OTHER, file)]


def _analyse(run: TrialRun, measured: Measured) -> _Packets:
    if measured.recorded.report is None or measured.recorded.file is None:
        return _Packets(not_available=dict.fromkeys(_PACKET_METRICS, measured.recorded.absent))
    report = measured.recorded.report
    first, count = BTL_PORTS
    try:
        result = analysis.analyse(
            measured.recorded.file,
            mpi_ports=(first, first + count - 1) if measured.known_ports else None,
            drops=None if report.died else analysis.DropCounters(report.captured, report.received, report.dropped),
            mtu=mtu_of(run.launcher_kind, run.plan.link, measured.environment),
            link_rate_bps=_rate_of_every_host(run.launcher_kind, run.plan.link),
            host_ranks=measured.host_ranks,
        )
    except analysis.CaptureError as error:
        raise TrialFailed(f"The capture {measured.recorded.file.name} is kept but cannot be read: {error}.") from None
    reasons = list(result.trust.reasons)
    level: str = result.trust.verdict
    if report.died:
        level, reasons = TrustLevel.UNUSABLE, ["the capture tool ended before the run did", *reasons]
    if report.limit_reached:
        sentence = (
            f"the capture reached its limit after {plural(report.captured, 'packet')}; what came later was not recorded"
        )
        level, reasons = TrustLevel.UNUSABLE, [sentence, *reasons]
    write_analysis(run.directory / ANALYSIS_NAME, {**result.to_dict(), "legacy_2011": _legacy(result)})
    is_complete = not (report.died or report.limit_reached or report.dropped)
    if is_complete and (elsewhere := _why_elsewhere(run, measured, result)):
        return _Packets(not_available=dict.fromkeys(_PACKET_METRICS, elsewhere), trust=TrustLevel.GOOD)
    if doubts := _doubts(run, measured, result):
        level = worst(level, TrustLevel.DEGRADED)
        reasons += doubts
    if run.plan.hosts == 1 and not result.metrics["packets"] and is_complete:
        # An empty capture is the truth here, and nothing about it is doubtful.
        unused = dict.fromkeys(result.not_available, "all ranks are on one host: nothing crosses the network")
        return _Packets(result.metrics, result.mpi.metrics, unused, TrustLevel.GOOD)
    return _Packets(
        *(result.metrics, result.mpi.metrics, result.not_available, level, tuple(reasons)),
        _mpi_packets(measured, result),
    )


def _why_elsewhere(run: TrialRun, measured: Measured, result: analysis.CaptureAnalysis) -> str:
    """Return why the recorded packets are not those of MPI; "" if they may be."""
    is_mpi = measured.world.checked and any(usage.mpi_libraries for usage in measured.usages)
    if measured.known_ports or not is_mpi or bool(result.mpi.metrics.get("packets")) or result.roce is not None:
        return ""
    interface = (measured.environment.get("interface") or {}).get("name", "the recorded interface")
    if run.plan.hosts == 1:
        return f"no MPI connection was seen on {interface}: the ranks of one host used shared memory or another way"
    sent = sent_between_hosts(measured.inside.tables)
    if LEAST_BYTES <= sent <= result.metrics.get("payload_bytes", 0.0):
        return ""  # a library whose connections are not recognised
    amounts = f" (ranks sent each other {amount(sent, 'B')} between hosts)" if sent else ""
    return f"MPI used another network than {interface}, where no MPI connection was seen{amounts}"


def _doubts(run: TrialRun, measured: Measured, result: analysis.CaptureAnalysis) -> list[str]:
    """Return why the recording may miss messages between ranks."""
    if run.plan.hosts < 2:
        return []
    doubts = [] if measured.world.checked or _mpi_packets(measured, result) else [_SILENT_WORLD]
    seen_from = run.trial.conditions.get("captured_hosts")
    if seen_from and run.plan.hosts > 2 and measured.recorded.joined is None:
        only = measured.recorded.seen_from or seen_from[0]
        doubts.append(f"analysed from host {only} alone: packets between the other hosts are not counted")
    elif _is_whole(measured):
        unseen = why_unseen(measured.inside.tables, result.metrics.get("payload_bytes", 0.0))
        doubts += [unseen] if unseen else []
    return doubts


def _is_whole(measured: Measured) -> bool:
    """Return whether the recording should hold every packet between the hosts."""
    report = measured.recorded.report
    cut = report is None or report.died or report.limit_reached or report.dropped
    return not cut and len(measured.recorded.not_recorded) < 2


def mtu_of(kind: str, link: Link, environment: Mapping[str, Any]) -> int:
    """Return the largest datagram between hosts, requested or the interface's.

    The loopback interface passes datagrams that no network carries.
    """
    interface = environment.get("interface") or {}
    interface_mtu = interface.get("mtu")
    made = "MTU" in cluster_kinds.get(kind).emulates
    return link.mtu if made or not isinstance(interface_mtu, int) or interface.get("name") == "lo" else interface_mtu


def _rate_of_every_host(kind: str, link: Link) -> float | None:
    """Return the common rate of all hosts; None if they differ or it is not made."""
    if "bandwidth" not in cluster_kinds.get(kind).emulates:
        return None
    return None if link.rates_bps or link.topology == "two sites" else link.bandwidth_bps


def _legacy(result: analysis.CaptureAnalysis) -> dict[str, Any] | None:
    """Return the report of 2011 with its caveats, or None."""
    try:
        return {"figures": result.legacy_2011(), "caveats": list(LEGACY_CAVEATS)}
    except ValueError:
        return None


def _waits(run: TrialRun, measured: Measured) -> Explained:
    """Return why the ranks waited, if traced beside a capture of one clock."""
    inside = measured.inside
    if run.spec.profile != "trace":
        return no_waits("the experiment keeps no calls (profile: trace)")
    if inside.calls is None or inside.tables is None:
        return no_waits("the ranks left no calls")
    if measured.recorded.file is None:
        return no_waits(measured.recorded.absent)
    if run.trial.cluster is None or not run.trial.cluster.traits.on_this_machine:
        return no_waits("calls and packets have one clock only if all hosts are this machine's")
    windows_s = {row["rank"]: row["window_s"] for row in inside.tables["ranks"]}
    rate_bps = _rate_of_every_host(run.launcher_kind, run.plan.link)
    return explain_waits(
        inside.calls,
        measured.recorded.file,
        windows_s=windows_s,
        hosts={row["rank"]: row["host"] for row in inside.tables["ranks"]},
        link_rate_bps=rate_bps,
    )


def _keep_files(run: TrialRun, measured: Measured, waits: Mapping[str, Any] | None) -> list[Artifact]:
    """Write samples and ranks, move the inputs, and describe every stored file."""
    samples, ranks = run.directory / "samples.json", run.directory / "ranks.json"
    plain_files.write(samples, json.dumps(stored_shares(measured.samples)).encode())
    plain_files.write(ranks, json.dumps([asdict(usage) for usage in measured.usages]).encode())
    files: list[tuple[str, Any]] = [
        ("stdout", run.stdout),
        ("stderr", run.stderr),
        ("samples", samples),
        ("other", ranks),
    ]
    if measured.counted:
        write_analysis(run.directory / COUNTERS_NAME, dict(measured.counted))
        files.append(("other", run.directory / COUNTERS_NAME))
    if measured.inside.tables is not None:
        explained = {} if waits is None else {"waits": waits}
        messages = {} if measured.inside.transport is None else {"ways": measured.inside.transport.to_dict()}
        write_analysis(run.directory / MPI_PROFILE_NAME, {**measured.inside.tables, **explained, **messages})
        files.append(("other", run.directory / MPI_PROFILE_NAME))
    if measured.inside.calls is not None:
        plain_files.write(run.directory / MPI_CALLS_NAME, to_bytes(measured.inside.calls))
        files.append(("other", run.directory / MPI_CALLS_NAME))
    work = run.directory / "work"
    inputs = [file for file in measured.inputs if plain_files.is_there(file)]
    names = [
        name
        for patterns in (run.plan.workload.outputs, run.plan.workload.keeps)
        for name in written.names_of(work, patterns)
    ]
    names = [name for name in dict.fromkeys(names) if work / name not in inputs]
    written.require_room([*inputs, *(work / name for name in names)], limit_bytes=settings.TRIAL_DISK_BYTES)
    files += [("input", plain_files.move(file, run.directory / file.name)) for file in inputs]
    files += [("other", written.keep(work, name, run.directory)) for name in names]
    if measured.recorded.file is not None:
        files.append(("analysis", run.directory / ANALYSIS_NAME))
        if run.spec.capture.keep:
            files.append(("capture", measured.recorded.file))
            files += [("capture", other) for other in sorted(run.directory.glob("capture-*.pcapng.zst"))]
        else:
            for file in run.directory.glob("capture*.pcapng.zst"):
                file.unlink()
    return [
        Artifact.describe(run.trial.pk, kind, file, name=written.name_in(file, run.directory)) for kind, file in files
    ]
