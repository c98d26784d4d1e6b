"""Memory for recorded packets, mapped before the measured program starts.

On a virtual machine the first access to a page costs ten times as much as later ones (measured 10 us against 1 us), since its
host has to provide it. At 150 000 packets per second on two busy cores that was a tenth of the ranks' time.
"""

from __future__ import annotations

import os
from typing import Final

from workers.agent.process_table import available_memory_bytes

READY_BYTES: Final = 128 << 20
"""600 000 packets at the default snap length: four seconds of the most that two cores send."""
_STEP: Final = bytes(1 << 20)


class SlotMemory:
    """Anonymous files for `workers.capture.ring`, which live as long as the hosts.

    A recording's length is the position in its file, which the recorder shares: the file itself is longer.
    """

    def __init__(self) -> None:
        self._free: list[int] = []
        self._most_bytes = 0

    def take(self) -> int:
        """Return the descriptor of a file to write from its start. Raises OSError."""
        if self._free:
            descriptor = self._free.pop()
            os.lseek(descriptor, 0, os.SEEK_SET)
            return descriptor
        free = available_memory_bytes()
        self._most_bytes = max(self._most_bytes, free // 8)
        descriptor = os.memfd_create("slots")
        try:
            for offset in range(0, min(READY_BYTES, free // 16), len(_STEP)):
                os.pwrite(descriptor, _STEP, offset)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def give_back(self, descriptor: int) -> None:
        """Take back a file that is no longer in use."""
        if os.fstat(descriptor).st_size > self._most_bytes:
            os.ftruncate(descriptor, self._most_bytes)
        self._free.append(descriptor)

    def close(self) -> None:
        """Free the files that were given back. Idempotent."""
        while self._free:
            os.close(self._free.pop())


def filled_bytes(descriptor: int) -> int:
    """Return how much the recorder has written so far."""
    return os.lseek(descriptor, 0, os.SEEK_CUR)
