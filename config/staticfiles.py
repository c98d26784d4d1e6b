"""Static files: the files of npm packages that pages use, and their storage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage, Storage
from whitenoise.storage import CompressedManifestStaticFilesStorage

# static folder -> (folder, patterns)
FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "vendor": ("build", ("tabler.css", "plotly.js")),  # config/front_end.py
    "vendor/ibm-plex-sans": ("node_modules/@fontsource-variable/ibm-plex-sans", ("files/*-latin*-wght-normal.woff2",)),
    "vendor/ibm-plex-mono": ("node_modules/@fontsource/ibm-plex-mono", ("files/*-latin*-[456]00-normal.woff2",)),
}


class ManifestStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise has no types
    """Hashed file names and compressed files, without source maps."""

    patterns = tuple(
        (glob, tuple(rule for rule in rules if "sourceMappingURL" not in str(rule)))
        for glob, rules in CompressedManifestStaticFilesStorage.patterns
    )

    def compress_files(self, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Compress the files of new hashed names: the best level of Brotli takes seconds."""
        hashed = {*self.hashed_files.values()}.intersection(paths)
        yield from super().compress_files({path for path in hashed if not Path(self.path(f"{path}.br")).exists()})


class NodeModulesFinder(BaseFinder):
    """Finds `FILES` under their static folders."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.root = Path(settings.BASE_DIR)

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        paths = [str(self.root / folder / name) for target, folder, name in self._files() if f"{target}/{name}" == path]
        return paths if find_all else next(iter(paths), [])

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:
        for target, folder, name in self._files():
            storage = FileSystemStorage(location=self.root / folder)
            storage.prefix = target  # type: ignore[attr-defined]  # what collectstatic puts before the name
            yield name, storage

    def _files(self) -> Iterator[tuple[str, str, str]]:
        for target, (folder, patterns) in FILES.items():
            base = self.root / folder
            for pattern in patterns:
                for file in sorted(base.glob(pattern)):
                    yield target, folder, file.relative_to(base).as_posix()
