"""Export of a trial's files: whole, cut to headers, anonymised, or left out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Protocol, Self, cast

import zstandard
from django.conf import settings

from analysis.capture.anonymised import Anonymiser
from analysis.errors import CaptureError
from experiments.common import plain_files
from experiments.errors import CannotExport, NotPlain, StoreUnavailable, Tampered
from experiments.exchange import rows
from experiments.exchange.archive import in_pieces
from experiments.exchange.crate import WrittenFile
from experiments.exchange.records import CAPTURES, Captures, FileRecord
from experiments.models import Artifact, Trial

CUT: Final = "cut to the headers of its packets"
MASKED: Final = "its addresses were replaced"
ADDRESSES_IN_CONTENTS: Final = (
    "Addresses are in the contents of packets too: cut captures to their headers, or leave them out."
)
_SEARCHED_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class BundleOptions:
    """Options of a bundle. Raise CannotExport for contradictory ones."""

    captures: Captures = "all"
    anonymise: bool = False
    licence: str = ""
    by: str = ""

    def __post_init__(self) -> None:
        if self.captures not in CAPTURES:
            raise CannotExport(f"Captures leave as one of {', '.join(CAPTURES)}, not as {self.captures!r}.")
        if self.anonymise and self.captures == "all":
            raise CannotExport(ADDRESSES_IN_CONTENTS)


class Target(Protocol):
    """A sink of files."""

    def stream(self, name: str, pieces: Iterable[bytes], about: str = "") -> WrittenFile: ...


@dataclass(slots=True)
class FileExporter:
    """Exporter of the files of one bundle; addresses are replaced consistently in all."""

    options: BundleOptions
    check: Callable[[], object] = lambda: None
    """Called at each piece of the work; what it raises ends the export."""
    hide: Anonymiser | None = field(init=False)

    def __post_init__(self) -> None:
        self.hide = Anonymiser(check=self.check) if self.options.anonymise else None

    def text(self, content: bytes) -> bytes:
        """Return a text as it is exported."""
        return content if self.hide is None else self.hide.text(content)

    def in_order(self, artifacts: list[Artifact]) -> list[Artifact]:
        """Return captures first if addresses are replaced: they show the networks."""
        return (
            artifacts
            if self.hide is None
            else sorted(artifacts, key=lambda artifact: artifact.kind != Artifact.Kind.CAPTURE)
        )

    def artifact(self, writer: Target, artifact: Artifact, trial: Trial, directory: str) -> FileRecord:
        """Export a file of a trial below ``directory``, or record why it is left out."""
        path = rows.path_within(artifact, trial)
        record: dict[str, Any] = {"kind": artifact.kind, "name": artifact.name, "path": path}
        try:
            return FileRecord(**record, **self._put(writer, artifact, f"{directory}/{path}"))
        except _LeftOut as why:
            content: dict[str, Any] = {"size_bytes": artifact.size_bytes, "sha256": artifact.sha256}
            return FileRecord(**record, **content, left_out=str(why)[:200])

    def _put(self, writer: Target, artifact: Artifact, name: str) -> dict[str, Any]:
        capture = artifact.kind == Artifact.Kind.CAPTURE
        if artifact.removed_at is not None:
            raise _LeftOut("its time of retention was over")
        if capture and self.options.captures == "none":
            raise _LeftOut("captures were not requested")
        with ExitStack() as block:
            try:
                file = block.enter_context(artifact.intact())
            except StoreUnavailable as error:
                raise CannotExport(f"{artifact.name} of trial {artifact.trial_id} cannot be read: {error}.") from None
            except (Tampered, NotPlain, OSError) as error:
                raise _LeftOut(f"it is not what the trial left: {error}") from None
            how, content = "", None
            if capture and self.options.captures == "headers":
                how = CUT if self.hide is None else f"{CUT}, {MASKED}"
                written = self._reduced(writer, file, name, how)
            elif self.hide is not None and (content := _masked(file, self.hide)) is not None:
                how = MASKED
                written = writer.stream(name, [content], how)
            else:
                written = writer.stream(name, pieces_of(file))
        if not how and written.sha256 != artifact.sha256:
            words = f"{artifact.name} of trial {artifact.trial_id} changed while it was read: make the bundle again."
            raise CannotExport(words)
        stored = {"size_bytes": written.size_bytes, "sha256": written.sha256}
        return {**stored, "changed": how, "original_sha256": artifact.sha256} if how else stored

    def _reduced(self, writer: Target, file: Path, name: str, how: str) -> WrittenFile:
        with plain_files.private(), self._temporary() as made, self._temporary() as plain:
            # Here: its kernels load numba, 55 MB that no process of the pages needs otherwise.
            from analysis.capture.reduced import write_reduced

            try:
                write_reduced(file, made, hide=self.hide, scratch=plain)
            except CaptureError as error:
                why = str(error).removeprefix(f"{file}: ")
                raise _LeftOut(f"it cannot be cut to its headers: {why}") from None
            made.seek(0)
            return writer.stream(name, in_pieces(made), how)

    def _temporary(self) -> IO[bytes]:
        return cast("IO[bytes]", _Checked(tempfile.TemporaryFile(dir=settings.VAR), self.check))


class _Checked:
    """An open file that calls ``check`` before it is read or written."""

    def __init__(self, file: IO[bytes], check: Callable[[], object]) -> None:
        self._file, self._check = file, check

    def read(self, size: int = -1) -> bytes:
        self._check()
        return self._file.read(size)

    def write(self, data: bytes) -> int:
        self._check()
        return self._file.write(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class _LeftOut(Exception):
    """A file that is not exported, with the reason."""


def _masked(file: Path, hide: Anonymiser) -> bytes | None:
    """Return a file with its addresses replaced; None if it has none. Raise _LeftOut."""
    with plain_files.opened(file) as stream:
        packed = file.name.endswith(".zst")
        try:
            source = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True) if packed else stream
            content: bytes = source.read(_SEARCHED_BYTES + 1)
        except zstandard.ZstdError:
            raise _LeftOut("it is damaged, and may contain addresses") from None
    if len(content) > _SEARCHED_BYTES:
        raise _LeftOut(f"it is longer than the {_SEARCHED_BYTES >> 20} MiB that are searched for addresses")
    masked = hide.text(content)
    if masked == content:
        return None
    try:
        content.decode()
    except UnicodeDecodeError:
        raise _LeftOut("it contains addresses and is not text, so they cannot be replaced") from None
    return zstandard.ZstdCompressor(level=9, write_checksum=True).compress(masked) if packed else masked


def pieces_of(file: Path) -> Iterator[bytes]:
    """Yield the bytes of a plain file."""
    with plain_files.opened(file) as stream:
        yield from in_pieces(stream)
