"""Stored recordings of an ended trial, and the joined capture of several hosts."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analysis.errors import CaptureError
from analysis.numbers import amount, plural
from experiments.common import plain_files
from workers.capture.dumpcap import Capture, CaptureReport
from workers.errors import TrialFailed

if TYPE_CHECKING:  # it loads numba, for which the first trial would wait
    from analysis.capture.join import Joined

NAME: Final = "capture.pcapng.zst"
SHARES: Final = "capture-shares"
"""Directory of what each recording contributes to the joined capture."""
CHECK_S: Final = 0.5
CLOCK_CHANGE_S: Final = 1e-3
"""A clock that moves by more against another during one trial was set, or runs wrong."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Analysed capture; ``reasons`` lower its trust."""

    report: CaptureReport | None = None
    file: Path | None = None
    joined: Joined | None = None
    """Joined recordings of several hosts; None for a single recording."""
    reasons: tuple[str, ...] = ()
    absent: str = ""
    """Reason without a capture; else empty."""
    not_recorded: tuple[str, ...] = ()
    """Hosts that could not be recorded, though others see all that they send to those."""
    seen_from: str = ""
    """The host whose recording is analysed alone, if hosts are recorded separately."""


def store_recordings(
    recordings: Mapping[str, Capture],
    directory: Path,
    addresses: Mapping[str, frozenset[str]],
    hosts: Collection[str],
    *,
    quiet_s: float,
    check: Callable[[], None],
) -> Recorded:
    """End and store every recording, by host; "" names one that is analysed alone.

    ``check`` is called while recordings are joined and may raise to give up. Raises TrialFailed.
    """
    reports = {host: capture.stop(quiet_s=quiet_s) for host, capture in recordings.items()}
    first, *others = reports
    reasons = tuple(reason for host in others for reason in not_recorded(host, reports[host]))
    if not first:
        for host, capture in recordings.items():
            capture.save(directory / (_name(host) if host else NAME))
        return Recorded(reports[first], directory / NAME, reasons=reasons)
    try:
        joined = _joined(recordings, directory, addresses, check)
    except CaptureError as error:
        (directory / _name(first)).rename(directory / NAME)
        fallback = f"{error}: packets of {first} alone are counted"
        return Recorded(reports[first], directory / NAME, reasons=(*reasons, fallback))
    reasons += (*_unseen(recordings, hosts), *_moved_clocks(joined))
    return Recorded(_report_of(reports, joined), directory / NAME, joined, reasons)


def _name(host: str) -> str:
    return f"capture-{host}.pcapng.zst"


def _joined(
    recordings: Mapping[str, Capture],
    directory: Path,
    addresses: Mapping[str, frozenset[str]],
    check: Callable[[], None],
) -> Joined:
    """Store every recording, and the joined capture of all (decision 23).

    Raises CaptureError and TrialFailed.
    """
    from analysis.capture.join import join_shares, require_size
    from analysis.capture.sharding import Recording, write_share

    _in_threads((partial(recording.save, directory / _name(host)) for host, recording in recordings.items()), check)
    sources = [
        Recording(host, recording.file, addresses.get(host, frozenset())) for host, recording in recordings.items()
    ]
    require_size(sources)
    shares = [directory / SHARES / str(number) for number in range(len(sources))]
    try:
        for share in shares:
            share.mkdir(parents=True)
        _in_threads((partial(write_share, sources, number, share) for number, share in enumerate(shares)), check)
        return join_shares([source.host for source in sources], shares, directory / NAME)
    except OSError as error:
        raise TrialFailed(f"The captures cannot be stored in {directory}: {error.strerror}.") from error
    finally:
        plain_files.discard(directory / SHARES)


def _in_threads(tasks: Iterable[Callable[[], object]], check: Callable[[], None]) -> None:
    """Run tasks on all cores: compressing and decoding release the interpreter's lock."""
    check()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            while wait(futures, CHECK_S).not_done:
                check()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for future in futures:
        future.result()


def not_recorded(host: str, report: CaptureReport) -> list[str]:
    """Return the losses of a further host's recording, in sentences."""
    losses = {
        f"the recording on {host} ended before the run did": report.died,
        f"the recording on {host} reached its limit after {plural(report.captured, 'packet')}": report.limit_reached,
        f"the recording on {host} dropped {plural(report.dropped, 'packet')}": report.dropped > 0,
    }
    return [sentence for sentence, true in losses.items() if true]


def _report_of(reports: Mapping[str, CaptureReport], joined: Joined) -> CaptureReport:
    """Return one report of the joined capture: losses add up, duplicates do not count."""
    first = next(iter(reports.values()))
    dropped = sum(report.dropped for report in reports.values())
    never_written = sum(max(report.received - report.captured, 0) for report in reports.values())
    return replace(first, captured=joined.packets, received=joined.packets + never_written, dropped=dropped)


def _unseen(recorded: Collection[str], hosts: Collection[str]) -> list[str]:
    """Return a sentence on unrecorded hosts whose frames to each other are missing."""
    missing = [host for host in hosts if host not in recorded]
    if not any(combinations(missing, 2)):
        return []
    return [f"packets between {', '.join(missing)} are not counted: none of them was recorded"]


def _moved_clocks(joined: Joined) -> list[str]:
    return [
        f"the clock of {host} moved by {amount(abs(offset.change_ns) / 1e9, 's')} against that of {joined.hosts[0]} during the "
        "run: times between connections of different hosts are uncertain"
        for host, offset in joined.clocks.items()
        if abs(offset.change_ns) / 1e9 > CLOCK_CHANGE_S + offset.unsure_ns / 1e9
    ]
