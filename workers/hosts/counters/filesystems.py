"""Bytes of NFS and Lustre mounts, and time in NFS, of all programs of the host."""

from __future__ import annotations

import re
import time

from workers.hosts.counters.source import Absent, AbsentNow, Meter, Quantity, Source, whole_text

_SERVER_READ, _SERVER_WRITTEN = 4, 5
"""Places in the line `bytes:` of mountstats: what was fetched from, and sent to, servers."""
_EXECUTED_MS = 8
"""Place in a line of an operation below `per-op statistics`: milliseconds from request to end, of all requests."""
_SUM = 6
"""Place of the sum in a line of Lustre: NAME COUNT samples [UNIT] MIN MAX SUM."""


_OCTAL = re.compile(r"\\([0-7]{3})")
"""Blanks of mount points, as the kernel writes them."""


class Nfs(Source):
    """NFS mounts of the host.

    Mounts of one export share a superblock, whose counters each of them repeats: the first one is read. What an
    automounter mounts while the program runs is counted from 0, where its counters begin.
    """

    key = "nfs"
    title = "NFS"

    def probe(self) -> None:
        mounts = self._mounts()
        if not mounts:
            is_automounted = any(kind == "autofs" for kind, _ in self._superblocks().values())
            raise (AbsentNow if is_automounted else Absent)("no NFS is mounted")
        for mount in mounts:
            self._add_mount(mount)
        self.details = ", ".join(mounts)

    def _add_mount(self, mount: str) -> None:
        self.add(Quantity(f"{mount} read", "nfs_read_bytes", "B", device=mount))
        self.add(Quantity(f"{mount} written", "nfs_written_bytes", "B", device=mount))
        self.add(Quantity(f"{mount} time", "nfs_wait_s", "s", scale=1e-3, device=mount))

    def sample(self) -> None:
        """Read once more; mounts that are new begin at 0."""
        at_s = time.monotonic()
        for mount in self._mounts() if self.meters else ():
            if f"{mount} read" in self.quantities:
                continue
            self._add_mount(mount)
            for name in (f"{mount} {what}" for what in ("read", "written", "time")):
                self.meters[name] = Meter(self.quantities[name])
                self.meters[name].add(0.0, at_s)
        super().sample()

    def read(self) -> dict[str, float]:
        values = {}
        for mount, counts in self._mounts().items():
            values[f"{mount} read"], values[f"{mount} written"], values[f"{mount} time"] = counts
        return values

    def _mounts(self) -> dict[str, tuple[float, float, float]]:
        """Return bytes read and written, and milliseconds of operations, by mount point."""
        mounts: dict[str, list[float]] = {}
        at, is_operation = "", False
        superblocks, seen = self._superblocks(), set[str]()
        for line in whole_text(self.root / "proc/self/mountstats").splitlines():
            words = line.split()
            if words[:1] == ["device"]:
                mount, _, kind = line.partition(" mounted on ")[2].partition(" with fstype ")
                mount = _plain(mount)
                _, superblock = superblocks.get(mount, ("", mount))
                is_counted = kind.startswith("nfs") and superblock not in seen
                at, is_operation = mount if is_counted else "", False
                if is_counted:  # an automounter may be mounted on the same path
                    seen.add(superblock)
            elif words[:1] == ["bytes:"] and at and len(words) > _SERVER_WRITTEN + 1:
                mounts[at] = [float(words[1 + _SERVER_READ]), float(words[1 + _SERVER_WRITTEN]), 0.0]
            elif words[:1] == ["per-op"]:
                is_operation = True
            elif is_operation and at in mounts and len(words) > _EXECUTED_MS:
                mounts[at][2] += float(words[_EXECUTED_MS])
        return {mount: (read, written, milliseconds) for mount, (read, written, milliseconds) in mounts.items()}

    def _superblocks(self) -> dict[str, tuple[str, str]]:
        """Return kind and device number of each file system, by mount point."""
        by_mount = {}
        for line in whole_text(self.root / "proc/self/mountinfo").splitlines():
            words = line.split()
            if "-" in words[6:-1]:
                kind = words[words.index("-", 6) + 1]
                is_of_kernel = words[4] == "/proc/sys/fs/binfmt_misc"  # systemd mounts it on demand everywhere
                by_mount[_plain(words[4])] = ("" if is_of_kernel else kind, words[2])
        return by_mount


def _plain(mount: str) -> str:
    """Return a mount point with its blanks."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), mount)


class Lustre(Source):
    """Lustre mounts of the host."""

    key = "lustre"
    title = "Lustre"
    _PATTERNS = ("proc/fs/lustre/llite/*/stats", "sys/kernel/debug/lustre/llite/*/stats", "sys/fs/lustre/llite/*/stats")

    def probe(self) -> None:
        self._files = {file.parent.name: file for pattern in self._PATTERNS for file in self.glob(pattern)}
        if not self._files:
            raise Absent("no Lustre is mounted, or its statistics are readable by root only")
        for mount in self._files:
            self.add(Quantity(f"{mount} read", "lustre_read_bytes", "B", device=mount))
            self.add(Quantity(f"{mount} written", "lustre_written_bytes", "B", device=mount))
        self.details = ", ".join(self._files)

    def read(self) -> dict[str, float]:
        values = {}
        for mount, file in self._files.items():
            text = whole_text(file)
            if text:  # a mount without reads has no line yet
                lines = {words[0]: words for words in map(str.split, text.splitlines()) if len(words) > _SUM}
                for name, word in (("read", "read_bytes"), ("written", "write_bytes")):
                    values[f"{mount} {name}"] = float(lines[word][_SUM]) if word in lines else 0.0
        return values
