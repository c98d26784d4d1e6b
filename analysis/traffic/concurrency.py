"""Two cores for one capture: calls in lanes, taken by as few threads as there are cores for. Kernels hold no interpreter lock.

Threads live inside one call and are joined before it returns or raises, so a process may fork before and after.
"""

from __future__ import annotations

import _thread
import contextlib
import functools
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Generic, TypeVar

T = TypeVar("T")

DEPTH: Final = 2
"""Calls that may wait in a lane while a source goes on: enough to smooth, few enough for memory to stay bounded."""

_USUAL_SWITCH_S: Final = sys.getswitchinterval()
_SWITCH_S: Final = 5e-4
"""Between kernels of 0.1 to 1 ms nobody should wait 5 for the interpreter."""


def _free_cores(threads: int) -> list[int]:
    """The cores that this thread may use; none where others run now, and do not leave one for each of ``threads``."""
    try:
        cores = sorted(os.sched_getaffinity(0))
        with Path("/proc/loadavg").open("rb", buffering=0) as load:
            running = int(load.read(64).split()[3].partition(b"/")[0])
    except (OSError, AttributeError, IndexError, ValueError):  # not every system tells
        return []
    return cores if threads + running - 1 <= len(cores) else []


def _stay_on(cores: list[int], part: int, parts: int) -> None:
    """From now on this thread uses one of ``parts`` equal shares of ``cores`` alone.

    Threads that wake each other, as they do for the interpreter's lock, are kept on one core by the system while others are idle:
    29 ms instead of 27. Beside other programs they must be free to go where there is room.
    """
    if cores:
        with contextlib.suppress(OSError):  # a core was taken away meanwhile
            os.sched_setaffinity(0, cores[part::parts])


def _started(call: Callable[..., object], *arguments: object) -> threading.Lock:
    """A lock that is free once ``call`` has ended, in a thread that has yet to begin: `threading.Thread` would wait for that,
    which on an idle core took 0.3 of 25 ms.
    """
    ended = threading.Lock()

    def run() -> None:
        try:
            call(*arguments)
        finally:
            ended.release()

    ended.acquire()
    _thread.start_new_thread(run, ())
    return ended


class Later(Generic[T]):
    """What a call will have returned once the crew is done."""

    def __init__(self) -> None:
        self._values: list[T] = []

    def put(self, value: T) -> None:
        self._values.append(value)

    def __call__(self) -> T:
        return self._values[0]


class Lane:
    """Calls that run one after the other, in the order given, in whatever thread of the crew has time."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self.waiting: deque[Callable[[], object]] = deque()
        self.busy = False
        self.thread: int | None = None
        """The one that took its last call."""

    def submit(self, call: Callable[[], object]) -> None:
        self._crew.submit(self, call)

    def result_of(self, call: Callable[[], T]) -> Later[T]:
        """Submit ``call``; returns what gives its result after ``Crew.run``."""
        later: Later[T] = Later()
        self.submit(lambda: later.put(call()))
        return later


class Crew:
    """Lanes of calls and the threads that take them, the one that calls ``run`` among them.

    A thread that has done a call takes the next of any lane, so that as many threads as cores suffice: one for each lane would
    take turns on them, and wait for the system to wake it at every table.
    """

    def __init__(self, threads: int = 2, *, apart: bool = True) -> None:
        """``apart``: each thread on cores of its own, where they are free. Programs that calls start would stay there, too."""
        self._changed = threading.Condition()
        self._lanes: list[Lane] = []
        self._source: Callable[[], bool] | None = None
        self._feed: Lane | None = None
        self._drawing = False
        self._idle = 0
        self._failure: BaseException | None = None
        self._threads, self._apart = threads, apart

    def lane(self) -> Lane:
        """Lanes asked for first are served first. Calls may ask for more."""
        with self._changed:
            self._lanes.append(Lane(self))
            return self._lanes[-1]

    def beside(self, call: Callable[[], T]) -> Later[T]:
        """``Lane.result_of`` in a lane of its own."""
        return self.lane().result_of(call)

    def draw(self, items: Iterable[T], lane: Lane, take: Callable[[T], object], behind: Callable[[], object]) -> None:
        """Hand every item to ``take`` in ``lane``, drawn while no lane has DEPTH calls waiting; call ``behind`` there after the last."""
        left = iter(items)

        def one() -> bool:
            for item in left:
                lane.submit(functools.partial(take, item))
                return True
            lane.submit(behind)
            return False

        self._source, self._feed = one, lane

    def submit(self, lane: Lane, call: Callable[[], object]) -> None:
        with self._changed:
            lane.waiting.append(call)
            if self._idle:
                self._changed.notify()

    def run(self) -> None:
        """Until every lane is empty and the source has ended. Raises what the first call raised that failed, and ends the others."""
        cores = _free_cores(self._threads) if self._apart else []
        others: list[threading.Lock] = []
        try:
            sys.setswitchinterval(min(_USUAL_SWITCH_S, _SWITCH_S))
            for number in range(1, self._threads):
                others.append(_started(self._beside, cores, number))
            _stay_on(cores, 0, self._threads)
            self._work()
        except BaseException as interruption:  # of this thread, while it waits
            self._fail(interruption)
        for ended in others:
            ended.acquire()
        sys.setswitchinterval(_USUAL_SWITCH_S)
        _stay_on(cores, 0, 1)  # all of them
        self._source = None  # with the file that it reads
        if self._failure is not None:
            raise self._failure

    def _beside(self, cores: list[int], number: int) -> None:
        _stay_on(cores, number, self._threads)
        self._work()

    def _work(self) -> None:
        while (taken := self._next()) is not None:
            lane, call = taken
            more = False
            try:
                more = call() is True
            except BaseException as failure:  # raised by ``run``, whatever it is
                self._fail(failure)
            with self._changed:
                if lane is None:
                    self._drawing = False
                    self._source = self._source if more else None
                else:
                    lane.busy = False
                if self._idle:
                    self._changed.notify()

    def _fail(self, failure: BaseException) -> None:
        with self._changed:
            self._failure = self._failure or failure
            self._changed.notify_all()

    def _room_for_more(self) -> bool:
        """Whether no item waits to be taken, and few calls that items have led to."""
        return not (self._feed and self._feed.waiting) and all(len(lane.waiting) < DEPTH for lane in self._lanes)

    def _next(self) -> tuple[Lane | None, Callable[[], object]] | None:
        """The next call, its lane (or the source) marked as busy; None once there will be no more."""
        me = threading.get_ident()
        with self._changed:
            while self._failure is None:
                if self._source is not None and not self._drawing and self._room_for_more():
                    self._drawing = True  # first of all, so that nobody waits for the next item
                    return None, self._source
                ready = [lane for lane in self._lanes if lane.waiting and not lane.busy]
                if ready:  # rather where this thread was before, whose data its core still has
                    lane = next((lane for lane in ready if lane.thread in (None, me)), ready[0])
                    lane.busy, lane.thread = True, me
                    return lane, lane.waiting.popleft()
                if self._source is None and not any(lane.busy for lane in self._lanes):
                    break
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            self._changed.notify_all()
            return None
