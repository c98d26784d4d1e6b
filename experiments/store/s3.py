"""S3 storage with partial reads and listings.

Imported only if a bucket is configured: boto3 takes 0.2 s to import.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

import structlog
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files import File
from storages.backends.s3 import S3Storage

from experiments.common import plain_files
from experiments.errors import StoreUnavailable
from experiments.store.base import TRIALS, Upload

_PART: Final = 8 << 20
"""Part of an upload that is in memory."""
_PIECE: Final = 1 << 20
_SPARED_S: Final = 3.0
"""Time without requests after a failure: only the first file of a page waits."""
_GONE: Final = {"404", "NoSuchKey", "NotFound"}
log = structlog.get_logger()


class S3(S3Storage):  # type: ignore[misc]  # it has no types
    """A bucket of a server that speaks S3."""

    def __init__(self, **options: Any) -> None:
        self._away_until = 0.0
        # Supported by all servers; some refuse AWS' own checksums.
        checksums = "when_supported" if not options.get("endpoint_url") else "when_required"
        super().__init__(
            client_config=Config(
                connect_timeout=5,
                read_timeout=30,
                retries={"mode": "standard", "total_max_attempts": 3},
                signature_version="s3v4",
                s3={"addressing_style": "path" if options.get("endpoint_url") else "auto"},
                request_checksum_calculation=checksums,
                response_checksum_validation=checksums,
            ),
            transfer_config=TransferConfig(multipart_threshold=_PART, multipart_chunksize=_PART, use_threads=False),
            object_parameters={"ContentType": "application/octet-stream"},
            file_overwrite=True,
            **options,
        )

    def put(self, file: Path, path: str) -> None:
        """Send a plain file in parts; it appears complete or not at all."""
        with plain_files.opened(file) as stream, self._translated(path):
            self.save(path, File(stream, name=path))

    def read(self, path: str, first: int, length: int | None) -> Iterator[bytes]:
        """Yield the bytes of a file from ``first`` on."""
        arguments: dict[str, str] = {}
        if first or length is not None:
            arguments["Range"] = f"bytes={first}-{'' if length is None else first + length - 1}"
        with self._translated(path):
            answer = self._client.get_object(Bucket=self.bucket_name, Key=self._normalize_name(path), **arguments)
            body: IO[bytes] = answer["Body"]
            try:
                while piece := body.read(_PIECE):
                    yield piece
            finally:
                body.close()

    def length(self, path: str) -> int:
        """Return the length of a file. Raise FileNotFoundError, StoreUnavailable."""
        try:
            with self._translated(path):
                answer = self._client.head_object(Bucket=self.bucket_name, Key=self._normalize_name(path))
                return int(answer["ContentLength"])
        except FileNotFoundError:
            self._require_bucket()  # a missing bucket gives the same answer
            raise

    def _require_bucket(self) -> None:
        try:
            with self._translated(self.bucket_name):
                self._client.head_bucket(Bucket=self.bucket_name)
        except FileNotFoundError:
            raise StoreUnavailable(f"the store of files has no bucket {self.bucket_name}") from None

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        with self._translated(path):
            self.delete(path)

    def below(self, path: str) -> Iterator[tuple[str, int, datetime]]:
        """Yield (path, length, time of storage) of all files below a path, in byte order."""
        pages = self._client.get_paginator("list_objects_v2")
        with self._translated(path):
            for page in pages.paginate(Bucket=self.bucket_name, Prefix=f"{self._root}{path.rstrip('/')}/"):
                for entry in page.get("Contents", ()):
                    yield entry["Key"].removeprefix(self._root), int(entry["Size"]), entry["LastModified"]

    def unfinished(self) -> Iterator[Upload]:
        """Yield unfinished multipart uploads."""
        pages = self._client.get_paginator("list_multipart_uploads")
        with self._translated(""):
            for page in pages.paginate(Bucket=self.bucket_name, Prefix=f"{self._root}{TRIALS}/"):
                for upload in page.get("Uploads", ()):
                    yield Upload(upload["Key"].removeprefix(self._root), upload["UploadId"], upload["Initiated"])

    def end(self, upload: Upload) -> None:
        """Remove the parts of an upload."""
        key = f"{self._root}{upload.path}"
        with suppress(FileNotFoundError), self._translated(upload.path):
            self._client.abort_multipart_upload(Bucket=self.bucket_name, Key=key, UploadId=upload.key)

    @property
    def _root(self) -> str:
        return f"{self.location.strip('/')}/" if self.location.strip("/") else ""

    @property
    def _client(self) -> Any:
        return self.connection.meta.client

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        """Translate errors of boto3 to FileNotFoundError or StoreUnavailable, fast."""
        if time.monotonic() < self._away_until:
            raise StoreUnavailable("the store of files does not answer")
        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code in _GONE:
                raise FileNotFoundError(f"{path} is not in the store") from None
            log.warning("store_refused", path=path, code=code, reason=str(error))
            raise StoreUnavailable(f"the store of files answers {code or 'with an error'}") from error
        except (BotoCoreError, Boto3Error) as error:
            log.warning("store_away", path=path, reason=str(error))
            self._away_until = time.monotonic() + _SPARED_S
            raise StoreUnavailable(f"the store of files does not answer ({type(error).__name__})") from error
