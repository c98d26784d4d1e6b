"""Two cores for one capture: read ahead in one thread, accumulate in others. Kernels hold no interpreter lock.

Threads live inside one call and are joined before it returns or raises, so a process may fork before and after.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

T = TypeVar("T")

DEPTH: Final = 2
"""Tables that may wait between two threads: enough to smooth, few enough for memory to stay bounded."""


def ahead(produce: Iterator[T]) -> Iterator[T]:
    """The items of ``produce``, which runs in a thread of its own up to DEPTH items ahead; its exception is raised here."""
    waiting: queue.Queue[tuple[bool, Any]] = queue.Queue(DEPTH)
    stop = threading.Event()

    def run() -> None:
        last: tuple[bool, Any] = (False, None)
        try:
            for item in produce:
                waiting.put((True, item))
                if stop.is_set():
                    return
        except BaseException as error:  # handed to the consumer, whatever it is
            last = (False, error)
        waiting.put(last)

    thread = threading.Thread(target=run, name="capture-reader", daemon=True)
    thread.start()
    try:
        while True:
            more, item = waiting.get()
            if not more:
                if item is not None:
                    raise item
                return
            yield item
    finally:
        stop.set()
        while thread.is_alive():  # a producer that waits for room must find some to see that nobody listens
            _drain(waiting)
            thread.join(0.01)


def _drain(waiting: queue.Queue[Any]) -> None:
    try:
        while True:
            waiting.get_nowait()
    except queue.Empty:
        return


class Alongside:
    """Calls, one after the other in the order given, in a thread of their own. Use as a context manager.

    ``submit`` waits while DEPTH calls are outstanding and raises what an earlier call raised; leaving joins the thread.
    """

    def __init__(self, name: str) -> None:
        """``name`` is that of the thread, for whoever looks at the process."""
        self._waiting: queue.Queue[Callable[[], object] | None] = queue.Queue(DEPTH)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Alongside:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._waiting.put(None)
        self._thread.join()
        if kind is None:
            self._raise()

    def _run(self) -> None:
        for call in iter(self._waiting.get, None):
            if self._failure is None:
                try:
                    call()
                except BaseException as failure:  # raised by the thread that submits
                    self._failure = failure

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure

    def submit(self, call: Callable[[], object]) -> None:
        self._raise()
        self._waiting.put(call)

    def result_of(self, call: Callable[[], T]) -> Callable[[], T]:
        """Submit ``call``; returns what gives its result, to be asked after leaving."""
        returned: list[T] = []
        self.submit(lambda: returned.append(call()))
        return lambda: returned[0]
