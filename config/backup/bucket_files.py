"""Files of a backup into a bucket. Nothing that lies there is touched: what is there already is the same, or the restore ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from config.backup.errors import KeepingError
from config.backup.layout import FILES
from config.backup.progress import Progress
from experiments import store


@contextmanager
def sent(
    directory: Path, bucket: store.Bucket, sums: Mapping[str, str], size_bytes: int, tell: Callable[[str], object]
) -> Iterator[None]:
    """Send the files of a backup to the paths that its database names; they are taken back where the block ends with an error."""
    files = {path.removeprefix(f"{FILES}/"): digest for path, digest in sums.items() if path.startswith(f"{FILES}/")}
    there = {path for path, _, _ in bucket.below(store.TRIALS) if path in files}
    for path in there:
        if bucket.hash_of(path) != files[path]:
            raise KeepingError(
                f"the bucket has another file at {path}; set RANKWIRE_STORE_PREFIX to a part of it that is empty"
            )
    progress = Progress(tell, "files of trials", files=len(files) - len(there), size_bytes=size_bytes)
    new: list[str] = []
    try:
        for path in files.keys() - there:
            new.append(path)
            file = directory / FILES / path
            bucket.put(file, path)
            progress.add(file.stat().st_size)
        yield
    except BaseException:
        bucket.give_back(new)
        raise
