"""Time inside MPI of one trial: library, profiles, waits and messages."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from analysis.catalogue import METRICS
from analysis.mpi import counters as mpi_counters
from analysis.mpi import profile as mpi_profile
from analysis.mpi import wait_tables
from analysis.mpi.calls import MOST_CALLS, Calls, calls_of
from analysis.mpi.placement import Machine, findings, stored
from analysis.mpi.record import NotAProfile, RankProfile, read
from analysis.mpi.streams import StreamAccumulator, Wire
from analysis.mpi.transports import ObservedTransport, observed_transport, place_of, places_in_words
from analysis.mpi.waits import explained
from analysis.numbers import amount
from experiments.common import plain_files
from experiments.errors import NotPlain
from experiments.metrics import FROM_TWINS
from workers.errors import ProfileUnavailable
from workers.launchers import Profile, Session
from workers.profile.library import library, library_path
from workers.trial.rank_usage import RankUsage, read_rank_usage

FILE_LIMIT_BYTES: Final = 64 << 20
TRANSPORT_LIMIT_BYTES: Final = 1 << 20
TRANSPORTS_LIMIT_BYTES: Final = 32 << 20
"""Of all ranks: a connection takes ten times as much memory as its line."""
_IDENTIFIERS: Final = (
    *(metric.id for metric in METRICS.values() if metric.section == "mpi"),
    *mpi_counters.METRICS,
)
_NO_TWIN: Final = (
    "no ideal-network run of it has finished (ideal: true adds such runs to measured trials, on the test-bed)"
)
_NOT_ASKED: Final = "the experiment records no time inside MPI (its setting is profile: none)"
LEAST_BYTES: Final = 100_000
"""Fewer could be the start of the job as well."""
_SHARE: Final = 0.9
"""Of what ranks sent, at least so much must have been seen; its payload on the wire is larger than it, never smaller."""

Explained = tuple[dict[str, float], dict[str, str], dict[str, Any] | None]
"""Metrics of waits, why others are absent, and their table."""


@dataclass(frozen=True, slots=True)
class InsideMpi:
    """Metrics by identifier, tables for the page, and why metrics are absent."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, Any] | None = None
    not_available: Mapping[str, str] = field(default_factory=dict)
    calls: Calls | None = None
    """Every call of the ranks, if the trial keeps a trace."""
    tools: Sequence[str] = ()
    """Files of other tools whose functions replaced those of MPI; their work counts as time inside MPI."""
    transport: ObservedTransport | None = None
    """The transport that the ranks used; None: not known."""
    places: str = ""
    """The placement of the ranks in words; empty: not known."""
    misplaced: Mapping[str, str] = field(default_factory=dict)
    """Findings about the placement, with their sentences (`analysis.mpi.placement.findings`)."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Machines of the ranks. ``by_hardware_threads``: the user places ranks on these."""

    machines: Sequence[Machine] = ()
    threads: int = 1
    by_hardware_threads: bool = False


_UNKNOWN: Final = Layout()


def profile_for(level: str, session: Session) -> tuple[Profile | None, str]:
    """Return the profile library for the ranks on these hosts, or why there is none."""
    if level == "none":
        return None, _NOT_ASKED
    try:
        return Profile(level, library(session.architecture())), ""
    except ProfileUnavailable as error:
        return None, str(error)


def previewed(level: str) -> Profile | None:
    """Return the expected profile library; nothing is built."""
    try:
        return None if level == "none" else Profile(level, library_path())
    except ProfileUnavailable:
        return None


def absent(reason: str) -> InsideMpi:
    """Return that there is no profile."""
    return InsideMpi(not_available=dict.fromkeys(_IDENTIFIERS, reason))


def inside_mpi(
    profile: Profile, report_dir: Path, usages: Sequence[RankUsage], ranks: int, layout: Layout = _UNKNOWN
) -> InsideMpi:
    """Return the ranks' profile; without any rank no metrics, not a wrong mean."""
    if not any(usage.mpi_libraries or _file(report_dir, usage.rank).exists() for usage in usages):
        return absent("no MPI library was seen in the program: it uses none, or is linked statically")
    try:
        profiles = [_read(report_dir, usage, max(1, MOST_CALLS // len(usages))) for usage in usages]
        if len(profiles) < ranks:
            return absent(f"{len(profiles)} of {ranks} ranks left a profile")
        metrics = mpi_profile.metrics(profiles)
    except ValueError as error:
        return absent(str(error))
    tables = mpi_profile.tables(profiles, {usage.rank: usage.host for usage in usages}, profile.level)
    missing = {metric: mpi_profile.NO_RUN_DELAY for metric in mpi_profile.RUN_DELAY_METRICS if metric not in metrics}
    tools = sorted({tool for profile_of_rank in profiles for tool in profile_of_rank.tools})
    texts, hosts = _texts_of_transport(report_dir, usages), {usage.rank: usage.host for usage in usages}
    places = {rank: place_of(text) for rank, text in texts.items()}
    io = {usage.rank: {"io": dict(usage.io)} for usage in usages if usage.io}
    for row in tables["ranks"]:
        row.update(places.get(row["rank"], {}) | io.get(row["rank"], {}))
    tables["machines"] = stored(layout.machines)
    misplaced = findings(tables["ranks"], layout.machines, layout.threads)
    if layout.by_hardware_threads:
        misplaced.pop("threads_as_cores", None)
    missing |= dict.fromkeys(FROM_TWINS, _NO_TWIN)
    counted, not_counted = mpi_counters.counter_metrics([(rank.rank, rank.counters) for rank in profiles])
    # Virtual hosts share the cores of one machine.
    machine_of = {host: machine.name for machine in layout.machines for host in machine.hosts}
    in_words = places_in_words(places, {rank: machine_of.get(host, host) for rank, host in hosts.items()})
    transport = observed_transport(texts, hosts)
    return InsideMpi(
        metrics | counted, tables, missing | not_counted, calls_of(profiles), tools, transport, in_words, misplaced
    )


def read_observed_transport(report_dir: Path, usages: Sequence[RankUsage]) -> ObservedTransport | None:
    """Return how messages went between the ranks; None if a report is missing."""
    return observed_transport(_texts_of_transport(report_dir, usages), {usage.rank: usage.host for usage in usages})


def _texts_of_transport(report_dir: Path, usages: Sequence[RankUsage]) -> dict[int, str]:
    texts, room = {}, TRANSPORTS_LIMIT_BYTES
    for usage in usages:
        with contextlib.suppress(NotPlain, OSError):
            file = report_dir / f"rank-{usage.rank}.mpi.ways"
            text = plain_files.read_text(file, limit_bytes=min(TRANSPORT_LIMIT_BYTES, room))
            texts[usage.rank], room = text, room - file.stat().st_size
    return texts


def left_behind(report_dir: Path, ranks: int) -> dict[str, Any] | None:
    """Return the tables of readable profiles of a failed run, or None.

    Of its ranks alone: the program can write any number of such files.
    """
    usages: dict[int, RankUsage] = {}
    with contextlib.suppress(NotPlain, ValueError, TypeError, OSError):
        usages = {usage.rank: usage for usage in read_rank_usage(report_dir)}
    profiles = []
    for rank in range(ranks):
        usage = usages.get(rank)
        with contextlib.suppress(NotPlain, NotAProfile, OSError), plain_files.opened(_file(report_dir, rank)) as stream:
            profile = read(stream.read(FILE_LIMIT_BYTES), killed_ns=usage.ended_ns if usage else None)
            profiles.append(replace(profile, trace=None))
    if not profiles:
        return None
    return mpi_profile.tables(profiles, {usage.rank: usage.host for usage in usages.values()}, "")


def _file(report_dir: Path, rank: int) -> Path:
    return report_dir / f"rank-{rank}.mpi"


def _read(report_dir: Path, usage: RankUsage, most_calls: int) -> RankProfile:
    """Raise NotAProfile with a sentence's part that names the rank."""
    file = _file(report_dir, usage.rank)
    try:
        with plain_files.opened(file) as stream:
            profile = read(stream.read(FILE_LIMIT_BYTES), killed_ns=usage.ended_ns, most_calls=most_calls)
        if profile.rank != usage.rank:
            raise NotAProfile(f"it is the profile of rank {profile.rank}")
        return profile
    except FileNotFoundError:
        raise NotAProfile(
            f"rank {usage.rank} left no profile: its program never ended MPI_Init, is linked statically, or did not load the library "
            "(a script may have replaced LD_PRELOAD)"
        ) from None
    except (NotPlain, NotAProfile) as error:
        raise NotAProfile(f"the profile of rank {usage.rank} cannot be read: {error}") from None


def no_waits(reason: str) -> Explained:
    """Return that no wait is explained."""
    return {}, dict.fromkeys(wait_tables.METRICS, reason), None


def explain_waits(
    calls: Calls,
    capture: Path,
    *,
    windows_s: Mapping[int, float],
    hosts: Mapping[int, str],
    link_rate_bps: float | None,
) -> Explained:
    """Explain the waits of a trial; ``windows_s``, ``hosts``: by rank.

    Raises analysis.CaptureError.
    """
    waits = explained(calls, wire_of(capture), link_rate_bps, hosts=hosts)
    return *wait_tables.metrics(waits, windows_s), wait_tables.table(waits)


def wire_of(capture: Path) -> Wire:
    """Return the ranks' bytes on the wire. Raises analysis.CaptureError."""
    packets = StreamAccumulator()
    from analysis.capture.tables import tables_of  # loads numba, which pages with a preview do without

    for table in tables_of(capture):
        packets.update(table)
    return packets.result()


def sent_between_hosts(tables: Mapping[str, Any] | None) -> int:
    """Return bytes of point-to-point messages between hosts, from the profile."""
    return 0 if tables is None else int(tables["between_hosts_bytes"])


def why_unseen(tables: Mapping[str, Any] | None, payload_bytes: float) -> str | None:
    """Return why the recording is not the program's traffic, or None.

    ``payload_bytes``: of the whole recording. Messages may take another network or shared memory.
    """
    sent = sent_between_hosts(tables)
    if sent < LEAST_BYTES or payload_bytes >= _SHARE * sent:
        return None
    return (
        f"ranks on different hosts sent each other {amount(sent, 'B')}, and {amount(payload_bytes, 'B')} were seen on the recorded "
        "interface: their messages went another way, over another network or through shared memory"
    )
