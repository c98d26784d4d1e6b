"""Trials with a profile of time inside MPI, and with an analysis of their capture."""

from __future__ import annotations

import json
from typing import Any

import zstandard

from experiments.files import ANALYSIS_NAME, MPI_PROFILE_NAME
from experiments.models import Artifact, Trial
from tests.experiments.factories import stored_file


def with_profile(trial: Trial, profile: dict[str, Any]) -> Trial:
    """The trial, with this profile among its files."""
    return _with(trial, MPI_PROFILE_NAME, profile, Artifact.Kind.OTHER)


def with_analysis(trial: Trial, analysis: dict[str, Any]) -> Trial:
    """The trial, with this analysis among its files."""
    return _with(trial, ANALYSIS_NAME, analysis, Artifact.Kind.ANALYSIS)


def _with(trial: Trial, name: str, content: dict[str, Any], kind: Artifact.Kind) -> Trial:
    stored_file(trial, name, zstandard.compress(json.dumps(content).encode()), kind).save()
    return trial
