"""Trials with a profile of time inside MPI."""

from __future__ import annotations

import json
from typing import Any

import zstandard

from experiments.files import MPI_PROFILE_NAME
from experiments.models import Artifact, Trial
from tests.experiments.factories import stored_file


def with_profile(trial: Trial, profile: dict[str, Any]) -> Trial:
    """The trial, with this profile among its files."""
    content = zstandard.compress(json.dumps(profile).encode())
    stored_file(trial, MPI_PROFILE_NAME, content, Artifact.Kind.OTHER).save()
    return trial
