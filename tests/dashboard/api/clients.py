"""REST clients and URLs."""

from __future__ import annotations

from typing import Any

from django.test import Client

from experiments.models import ApiToken

EXPERIMENTS, TRIALS = "/api/v1/experiments/", "/api/v1/trials/"


def client_of(user: Any, **limits: Any) -> Client:
    """Return a client with a new token of ``user`` with these limits."""
    _, key = ApiToken.issue(user, "test", **limits)
    return Client(headers={"Authorization": f"Bearer {key}"})
