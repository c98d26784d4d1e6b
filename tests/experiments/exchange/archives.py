"""Bundles by their files, made and taken apart without the product."""

from __future__ import annotations

import hashlib
import zipfile
from io import BytesIO
from pathlib import Path

from experiments.exchange.archive import MANIFEST


def packed(files: dict[str, bytes], *, listed: bool = True) -> bytes:
    """Return a bundle of these files; with a list of hashes if ``listed``."""
    lines = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in (files | ({MANIFEST: lines.encode()} if listed else {})).items():
            made.writestr(name, content)
    return stream.getvalue()


def contents(bundle: Path | BytesIO) -> dict[str, bytes]:
    """Return the files of a bundle, without its list of hashes."""
    with zipfile.ZipFile(bundle) as made:
        return {name: made.read(name) for name in made.namelist() if name != MANIFEST}
