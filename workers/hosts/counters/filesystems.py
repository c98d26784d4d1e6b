"""Bytes of NFS and Lustre mounts, and time in NFS, of all programs of the host."""

from __future__ import annotations

from workers.hosts.counters.source import Absent, Quantity, Source, whole_text

_SERVER_READ, _SERVER_WRITTEN = 4, 5
"""Places in the line `bytes:` of mountstats: what was fetched from, and sent to, servers."""
_EXECUTED_MS = 8
"""Place in a line of an operation below `per-op statistics`: milliseconds from request to end, of all requests."""
_SUM = 6
"""Place of the sum in a line of Lustre: NAME COUNT samples [UNIT] MIN MAX SUM."""


class Nfs(Source):
    """NFS mounts of the host."""

    key = "nfs"
    title = "NFS"

    def probe(self) -> None:
        mounts = self._mounts()
        if not mounts:
            raise Absent("no NFS is mounted")
        for mount in mounts:
            self.add(Quantity(f"{mount} read", "nfs_read_bytes", "B", device=mount))
            self.add(Quantity(f"{mount} written", "nfs_written_bytes", "B", device=mount))
            self.add(Quantity(f"{mount} time", "nfs_wait_s", "s", scale=1e-3, device=mount))
        self.details = ", ".join(mounts)

    def read(self) -> dict[str, float]:
        values = {}
        for mount, counts in self._mounts().items():
            values[f"{mount} read"], values[f"{mount} written"], values[f"{mount} time"] = counts
        return values

    def _mounts(self) -> dict[str, tuple[float, float, float]]:
        """Return bytes read and written, and milliseconds of operations, by mount point."""
        mounts: dict[str, list[float]] = {}
        at, is_operation = "", False
        for line in whole_text(self.root / "proc/self/mountstats").splitlines():
            words = line.split()
            if words[:1] == ["device"]:
                mount, _, kind = line.partition(" mounted on ")[2].partition(" with fstype ")
                at, is_operation = mount if kind.startswith("nfs") else "", False
            elif words[:1] == ["bytes:"] and at and len(words) > _SERVER_WRITTEN + 1:
                mounts[at] = [float(words[1 + _SERVER_READ]), float(words[1 + _SERVER_WRITTEN]), 0.0]
            elif words[:1] == ["per-op"]:
                is_operation = True
            elif is_operation and at in mounts and len(words) > _EXECUTED_MS:
                mounts[at][2] += float(words[_EXECUTED_MS])
        return {mount: (read, written, milliseconds) for mount, (read, written, milliseconds) in mounts.items()}


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
