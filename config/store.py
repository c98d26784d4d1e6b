"""Settings of the artifact store: a directory or an S3 bucket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from config.environment import Environment


def artifacts(environment: Environment, var: Path) -> dict[str, Any]:
    """Return Django's STORAGES entry for artifacts."""
    bucket = environment.RANKWIRE_STORE_BUCKET
    options = {
        "bucket_name": bucket,
        "endpoint_url": environment.RANKWIRE_STORE_ENDPOINT.rstrip("/") or None,
        "region_name": environment.RANKWIRE_STORE_REGION or None,
        "location": environment.RANKWIRE_STORE_PREFIX.strip("/"),
        # Without keys boto3 searches the machine's credentials.
        "access_key": environment.RANKWIRE_STORE_KEY or None,
        "secret_key": environment.RANKWIRE_STORE_SECRET or None,
    }
    if not bucket:
        return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(var)}}
    return {"BACKEND": "experiments.store.s3.S3", "OPTIONS": options}
