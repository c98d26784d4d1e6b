"""Recordings of a trial's hosts, each compressed and made a share of the joined capture by a process of this machine that is free.

The trial's own process takes one after another and asks the others to do the same, so nobody waits for help that never comes. A claim
is a lock that the kernel frees when its holder dies; it only spares work: a share that two have made is put in place once.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from analysis.capture.join import Joined, join_shares, require_size
from analysis.capture.sharding import Recording, write_share
from analysis.errors import CaptureError, UnreadableCapture
from workers import queue
from workers.capture.dumpcap import store
from workers.errors import TrialFailed

DIRECTORY: Final = "shares"
HELPED_FROM_BYTES: Final = 8 << 20
"""Recordings that together are smaller are done before anybody has heard of them (decision 23)."""
PATIENCE_S: Final = 60.0
"""How long another process may take before its share is made here as well."""
POLL_S: Final = 0.02
_PLAN: Final = "plan.json"
_PACKED: Final = "packed"
_ERROR: Final = "error"

log = structlog.get_logger()


@dataclass(frozen=True)
class Shares:
    """The shares of one trial in a directory that is there until they are joined."""

    place: Path
    recordings: Sequence[Recording]

    @classmethod
    def begin(cls, place: Path, recordings: Sequence[Recording]) -> Shares:
        """Write down what is to be done. Raises TrialFailed."""
        plan = [[each.host, str(each.path), sorted(each.addresses)] for each in recordings]
        with _stored_in(place.parent):
            place.mkdir()
            unfinished = place / f"{_PLAN}.part"
            unfinished.write_text(json.dumps(plan))
            unfinished.rename(place / _PLAN)
        return cls(place, recordings)

    @classmethod
    def begun(cls, place: Path) -> Shares:
        """What the trial's process has written down. Raises FileNotFoundError once that is over."""
        plan = json.loads((place / _PLAN).read_text())
        return cls(place, [Recording(host, Path(path), frozenset(addresses)) for host, path, addresses in plan])

    def ask_for_help(self) -> None:
        """Ask other processes, where that takes less time than it spares."""
        if sum(each.path.stat().st_size for each in self.recordings) >= HELPED_FROM_BYTES:
            queue.share_out(self.place, range(1, len(self.recordings)))

    def is_done(self, number: int) -> bool:
        return self._of(number).is_dir()

    def take(self, number: int) -> bool:
        """Make a share, unless it is made or somebody is at it; return whether it is made. Raises OSError and TrialFailed."""
        with self._claimed(number) as claimed:
            if claimed and not self.is_done(number):
                self._make(number)
        return self.is_done(number)

    def finish(self, check: Callable[[], None], patience_s: float = PATIENCE_S) -> None:
        """Have every share made; ``check`` is asked meanwhile, and may raise to give up. Raises TrialFailed."""
        with _stored_in(self.place.parent):
            for number in range(len(self.recordings)):
                check()
                self.take(number)
            deadline = time.monotonic() + patience_s
            while left := [number for number in range(len(self.recordings)) if not self.take(number)]:
                check()
                if time.monotonic() >= deadline:
                    self._make(left[0])
                time.sleep(POLL_S)

    def keep_packed(self, number: int, path: Path) -> None:
        """Move the compressed recording to where it stays."""
        (self._of(number) / _PACKED).replace(path)

    def join(self, target: Path) -> Joined:
        """Write the joined capture of what ``finish`` had made. Raises CaptureError and TrialFailed."""
        require_size(self.recordings)
        places = [self._of(number) for number in range(len(self.recordings))]
        for place in places:
            if (place / _ERROR).exists():
                raise UnreadableCapture((place / _ERROR).read_text())
        with _stored_in(target.parent):
            return join_shares([each.host for each in self.recordings], places, target)

    def _of(self, number: int) -> Path:
        return self.place / str(number)

    def _make(self, number: int) -> None:
        unfinished = self.place / f"{number}.{os.getpid()}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        recording = self.recordings[number]
        with recording.path.open("rb") as packets:
            store(packets, unfinished / _PACKED, recording.path.stat().st_size)
        try:
            write_share(self.recordings, number, unfinished)
        except CaptureError as error:
            (unfinished / _ERROR).write_text(str(error))
        try:
            unfinished.rename(self._of(number))
        except OSError:
            if not self.is_done(number):
                raise
            shutil.rmtree(unfinished)

    @contextmanager
    def _claimed(self, number: int) -> Iterator[bool]:
        descriptor = os.open(self.place / f"{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield True
        except BlockingIOError:
            yield False
        finally:
            os.close(descriptor)


def help_with(place: Path, number: int) -> None:
    """Make a share of another process's trial; what goes wrong is that one's to find out."""
    try:
        Shares.begun(place).take(number)
    except (OSError, TrialFailed) as error:
        log.info("share_not_made", place=str(place), number=number, reason=str(error))


@contextmanager
def _stored_in(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TrialFailed(f"The captures cannot be stored in {directory}: {error.strerror}.") from error
