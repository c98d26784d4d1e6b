"""A file of a trial as it leaves: as it is, cut to the headers of its packets, with other addresses, or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Protocol

import zstandard
from django.conf import settings

from analysis.capture.anonymised import Anonymiser
from analysis.errors import CaptureError
from experiments.common import plain_files
from experiments.errors import CannotExport, NotPlain, StoreAway, Tampered
from experiments.exchange import rows
from experiments.exchange.crate import Written
from experiments.exchange.records import CAPTURES, Captures, FileRecord
from experiments.models import Artifact, Trial

CUT: Final = "cut to the headers of its packets"
MASKED: Final = "its addresses were replaced"
IN_CONTENTS: Final = (
    "Addresses stand in the contents of packets too: have captures cut to their headers, or leave them out."
)
_PIECE: Final = 1 << 20
_SEARCHED_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a bundle is to be made. Raise CannotExport for captures with contents and other addresses."""

    captures: Captures = "all"
    anonymise: bool = False
    licence: str = ""
    by: str = ""

    def __post_init__(self) -> None:
        if self.captures not in CAPTURES:
            raise CannotExport(f"Captures leave as one of {', '.join(CAPTURES)}, not as {self.captures!r}.")
        if self.anonymise and self.captures == "all":
            raise CannotExport(IN_CONTENTS)


class Target(Protocol):
    """What files are put into."""

    def stream(self, name: str, pieces: Iterable[bytes], about: str = "") -> Written: ...


@dataclass(slots=True)
class Leaving:
    """How the files of one bundle leave: addresses become the same others in all of them."""

    wanted: Wanted
    hide: Anonymiser | None = field(init=False)

    def __post_init__(self) -> None:
        self.hide = Anonymiser() if self.wanted.anonymise else None

    def text(self, content: bytes) -> bytes:
        """A text as it leaves."""
        return content if self.hide is None else self.hide.text(content)

    def in_order(self, artifacts: list[Artifact]) -> list[Artifact]:
        """Captures first where addresses are replaced: they tell which networks the other files may speak of."""
        return (
            artifacts if self.hide is None else sorted(artifacts, key=lambda each: each.kind != Artifact.Kind.CAPTURE)
        )

    def artifact(self, writer: Target, artifact: Artifact, trial: Trial, place: str) -> FileRecord:
        """Put a file of a trial below ``place``, or say why not."""
        told: dict[str, Any] = {"kind": artifact.kind, "name": artifact.name, "path": rows.path_within(artifact, trial)}
        own: dict[str, Any] = {"size_bytes": artifact.size_bytes, "sha256": artifact.sha256}
        capture = artifact.kind == Artifact.Kind.CAPTURE
        if artifact.removed_at is not None:
            return FileRecord(**told, **own, left_out="its time of retention was over")
        if capture and self.wanted.captures == "none":
            return FileRecord(**told, **own, left_out="captures were not asked for")
        with ExitStack() as block:
            try:
                file = block.enter_context(artifact.intact())
            except StoreAway as error:
                raise CannotExport(f"{artifact.name} of trial {trial.pk} cannot be read: {error}.") from None
            except (Tampered, NotPlain, OSError) as error:
                return FileRecord(**told, **own, left_out=f"it is not what the trial left: {error}"[:200])
            return self._file(writer, artifact, file, told, f"{place}/{told['path']}")

    def _file(self, writer: Target, artifact: Artifact, file: Path, told: dict[str, Any], name: str) -> FileRecord:
        own: dict[str, Any] = {"size_bytes": artifact.size_bytes, "sha256": artifact.sha256}
        capture = artifact.kind == Artifact.Kind.CAPTURE
        if capture and self.wanted.captures == "headers":
            try:
                return self._reduced(writer, file, name, told, artifact.sha256)
            except CaptureError as error:
                why = str(error).removeprefix(f"{file}: ")
                return FileRecord(**told, **own, left_out=f"it cannot be cut to its headers: {why}"[:200])
        if self.hide is not None:
            searched = _searched(file, self.hide)
            if searched.why_not:
                return FileRecord(**told, **own, left_out=searched.why_not)
            if searched.content is not None:
                written = writer.stream(name, [searched.content], MASKED)
                return _changed(told, written, artifact.sha256, MASKED)
        written = writer.stream(name, pieces_of(file))
        if written.sha256 != artifact.sha256:
            raise CannotExport(
                f"{artifact.name} of trial {artifact.trial_id} changed while it was read: make the bundle again."
            )
        return FileRecord(**told, **own)

    def _reduced(self, writer: Target, file: Path, name: str, told: dict[str, Any], original: str) -> FileRecord:
        how = CUT if self.hide is None else f"{CUT}, {MASKED}"
        with plain_files.private(), tempfile.TemporaryFile(dir=settings.VAR) as made:
            # Here: its kernels load numba, 55 MB that no process of the pages needs otherwise.
            from analysis.capture.reduced import write_reduced

            write_reduced(file, made, hide=self.hide, scratch=str(settings.VAR))
            made.seek(0)
            written = writer.stream(name, _read(made), how)
        return _changed(told, written, original, how)


@dataclass(frozen=True, slots=True)
class _Searched:
    """Other content (None: it leaves as it is), or why it stays here."""

    content: bytes | None = None
    why_not: str = ""


def _searched(file: Path, hide: Anonymiser) -> _Searched:
    """What becomes of a file in which addresses may stand."""
    with plain_files.opened(file) as stream:
        packed = file.name.endswith(".zst")
        try:
            source = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True) if packed else stream
            content: bytes = source.read(_SEARCHED_BYTES + 1)
        except zstandard.ZstdError:
            return _Searched(why_not="it is damaged, and may tell addresses")
    if len(content) > _SEARCHED_BYTES:
        return _Searched(why_not=f"it is longer than the {_SEARCHED_BYTES >> 20} MiB that are searched for addresses")
    masked = hide.text(content)
    if masked == content:
        return _Searched()
    try:
        content.decode()
    except UnicodeDecodeError:
        return _Searched(why_not="it tells addresses and is no text in which they could be replaced")
    return _Searched(zstandard.ZstdCompressor(level=9, write_checksum=True).compress(masked) if packed else masked)


def _changed(told: dict[str, Any], written: Written, original: str, how: str) -> FileRecord:
    return FileRecord(
        **told, size_bytes=written.size_bytes, sha256=written.sha256, changed=how, original_sha256=original
    )


def pieces_of(file: Path) -> Iterator[bytes]:
    """Yield the bytes of a plain file."""
    with plain_files.opened(file) as stream:
        yield from _read(stream)


def _read(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(_PIECE):
        yield piece
