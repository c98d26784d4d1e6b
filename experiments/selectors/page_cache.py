"""Cache of what a page computes from the rows of an ended experiment.

A key changes with every row that the page reads: an update gives a row of PostgreSQL another transaction (xmin) and
place (ctid). A start of the server or of PostgreSQL and another diagnosis or program change it too.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from django.core.cache import cache
from django.db import connection
from redis.exceptions import RedisError

from experiments import registered
from experiments.models import Experiment
from experiments.selectors.diagnosis import diagnosis_token

_CACHE_S: Final = 24 * 3600
_RUN: Final = secrets.token_hex(8)
"""One for all processes of a web server, which loads the code and the settings before it forks."""
_ROWS: Final = """
    WITH shown AS MATERIALIZED (
        SELECT id, ctid, xmin FROM experiments_experiment WHERE id = %s OR published
    ), own AS MATERIALIZED (
        SELECT id, ctid, xmin FROM experiments_trial WHERE experiment_id IN (SELECT id FROM shown)
    ), rows AS (
        SELECT hash_record_extended(ROW(ctid, xmin), 1) AS hash FROM shown
        UNION ALL SELECT hash_record_extended(ROW(own.ctid, own.xmin, v.ctid, v.xmin), 2)
            FROM own LEFT JOIN experiments_trialvalues v ON v.trial_id = own.id
        UNION ALL SELECT hash_record_extended(ROW(ctid, xmin), 3)
            FROM experiments_configuration WHERE experiment_id IN (SELECT id FROM shown)
    )
    SELECT pg_postmaster_start_time(), count(*), sum(hash) FROM rows
"""


def cached_page(experiment: Experiment, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the context of an ended experiment, computed if a row has changed.

    It is cached if its diagnosis is current (`fresh`).
    """
    try:
        token = diagnosis_token(experiment)
        key = None if token is None else _key(experiment, token)
        cached: dict[str, Any] | None = None if key is None else cache.get(key)
    except RedisError:  # pages work without the cache
        return compute()
    if cached is not None:
        return cached
    context = compute()
    if key is not None and context["fresh"]:
        with suppress(RedisError):
            cache.set(key, context, _CACHE_S)
    return context


def _key(experiment: Experiment, token: str) -> str:
    """Return the key of the loaded rows and of the versions of those still to read."""
    loaded = [model for model in (experiment, experiment.cluster) if model is not None]
    values = [getattr(model, field.attname) for model in loaded for field in model._meta.concrete_fields]
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, [experiment.pk])
        rows = cursor.fetchone()
    suggested = None if experiment.cluster is None else experiment.cluster.hosts_to_suggest
    text = repr((_RUN, token, registered.state(), values, suggested, rows))
    return f"page:{experiment.pk}:{hashlib.sha256(text.encode()).hexdigest()}"
