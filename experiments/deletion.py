"""Trash: delete an experiment, restore it, or remove it permanently.

Its rows leave their tables at once and are stored as PostgreSQL's COPY writes them, so that lists, counts, comparisons and exports need
no filter. Restored rows have the same keys. The files of its trials stay in place until permanent removal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

import psycopg
import structlog
import zstandard
from django.apps import apps
from django.conf import settings
from django.db import Error, connection, transaction
from django.db.models import CASCADE, SET_NULL, ForeignKey, Model, Sum
from django.db.models.functions import Now

from experiments import store
from experiments.errors import CannotRestore, StaleTrial, StoreUnavailable
from experiments.models import (
    Artifact,
    Cluster,
    Deleted,
    DeletedRows,
    DesignSize,
    Experiment,
    HistoryPart,
    Summary,
    TrialValues,
)
from experiments.models.changes import note

log = structlog.get_logger()
_WRITTEN_ANEW: Final = frozenset({DesignSize, HistoryPart, Summary, TrialValues})
"""Tables that triggers fill when rows are restored."""
_PIECE_BYTES: Final = 4 << 20
"""Size of the pieces that are compressed in memory."""


def delete(experiment: Experiment, *, by: Any) -> Deleted:
    """Move an experiment with all its results to the trash.

    Raise ReadOnly for published results, StaleTrial while trials or a background task are unfinished.
    """
    with experiment.while_idle("cancel them first"):
        for task in experiment.background_tasks.all():
            if not task.is_over:
                raise StaleTrial(f"A background task uses {experiment.name}: wait for it, or delete it.")
            task.forget()
        # With keys: rows that other requests add now wait, and find nothing to refer to.
        Experiment.objects.select_for_update().get(pk=experiment.pk)
        numbers = list(experiment.trials.select_for_update().order_by("pk").values_list("pk", flat=True))
        files = Artifact.objects.filter(trial__experiment=experiment, removed_at=None)
        deleted = Deleted.objects.create(
            uid=experiment.uid,
            slug=experiment.slug,
            name=experiment.name,
            workload=experiment.workload,
            project_id=experiment.project_id,
            owner_id=experiment.owner_id,
            by=by,
            trials=numbers,
            bytes=files.aggregate(total=Sum("size_bytes"))["total"] or 0,
        )
        stored = _store(deleted, experiment)
        _, gone = experiment.delete()
        anew = {model._meta.label for model in _WRITTEN_ANEW}
        if (lost := {label: n for label, n in gone.items() if n and label not in anew}) != stored:
            raise RuntimeError(f"{experiment.slug} has rows that are not stored: {lost} are not {stored}")
        deleted.refresh_from_db(fields=["at"])  # the database's clock
    return deleted


def restore_deleted(deleted: Deleted) -> Experiment:
    """Restore a deleted experiment. Raise CannotRestore."""
    gone = CannotRestore(f"{deleted.name} was restored or removed in the meantime.")
    try:
        with transaction.atomic():
            if not Deleted.objects.select_for_update().filter(pk=deleted.pk).exists():
                raise gone
            _restore(deleted)
            experiment = Experiment.objects.get(uid=deleted.uid)
            deleted.delete()
            note(experiment, "restored", "from the trash")
    except (Error, psycopg.Error) as error:
        why = str(error).strip().partition("\n")[0]
        raise CannotRestore(f"{deleted.name} cannot be restored: {why}") from error
    return experiment


def forget_old() -> int:
    """Remove experiments that were in the trash long enough; return the count."""
    if not settings.DELETED_DAYS:
        return 0
    old = Deleted.objects.filter(at__lt=Now() - timedelta(days=settings.DELETED_DAYS))
    return sum(remove(pk) for pk in old.values_list("pk", flat=True))


def remove(pk: int) -> bool:
    """Remove a deleted experiment for good; return False if it is gone.

    Its files are removed after the outermost commit, so that a rollback loses none.
    """
    with transaction.atomic():
        deleted = Deleted.objects.select_for_update().filter(pk=pk).first()
        if deleted is None:
            return False
        numbers = deleted.trials
        deleted.delete()
        transaction.on_commit(lambda: _remove_files(numbers))
    return True


def _remove_files(numbers: Iterable[int]) -> None:
    file_store = store.current()
    for number in numbers:
        try:
            file_store.remove_trial(number)
        except OSError as error:  # `store check` finds them
            log.warning("files_not_removed", trial=number, reason=str(error))
            if isinstance(error, StoreUnavailable):
                break


def _store(deleted: Deleted, experiment: Experiment) -> dict[str, int]:
    """Store every row of the experiment; return the count per model."""
    stored = {}
    for model, where in _with_it(experiment).items():
        columns = [_column(field) for field in model._meta.concrete_fields]
        listed = ", ".join(map(connection.ops.quote_name, columns))
        table = connection.ops.quote_name(model._meta.db_table)
        key = connection.ops.quote_name(_column(model._meta.pk))
        rows = 0
        query = f"COPY (SELECT {listed} FROM {table} WHERE {where} ORDER BY {key}) TO STDOUT"  # noqa: S608 - own names and a number
        for piece in _pieces(query):
            rows += piece.count(b"\n")  # one line per row
            deleted.rows.create(table=model._meta.db_table, columns=columns, data=zstandard.compress(piece))
        if rows:
            stored[model._meta.label] = rows
    return stored


def _with_it(experiment: Experiment) -> Mapping[type[Model], str]:
    """Return model -> condition of the rows that cascade, parents first.

    Rows that triggers write again are left out.
    """
    conditions: dict[type[Model], str] = {Experiment: f"id = {int(experiment.pk)}"}
    waiting: list[type[Model]] = [Experiment]
    while waiting:
        parent = waiting.pop(0)
        parents = (
            f"SELECT {connection.ops.quote_name(_column(parent._meta.pk))} FROM "  # noqa: S608 - own names
            f"{connection.ops.quote_name(parent._meta.db_table)} WHERE {conditions[parent]}"
        )
        for relation in parent._meta.get_fields(include_hidden=True):
            child: Any = relation.related_model
            if getattr(relation, "on_delete", None) is not CASCADE or child in conditions or child in _WRITTEN_ANEW:
                continue
            conditions[child] = f"{connection.ops.quote_name(_column(relation.field))} IN ({parents})"  # type: ignore[union-attr]
            waiting.append(child)
    return conditions


def _column(field: Any) -> str:
    return str(field.column)


def _pieces(query: str) -> Iterator[bytes]:
    """Yield the output of a COPY in pieces of whole rows."""
    piece = bytearray()
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        for row in copy:
            piece += row
            if len(piece) >= _PIECE_BYTES:
                yield bytes(piece)
                piece.clear()
    if piece:
        yield bytes(piece)


def _restore(deleted: Deleted) -> None:
    clusters = {key for rows in deleted.rows.filter(columns__contains="cluster_id") for key in rows.clusters()}
    if Cluster.objects.filter(pk__in=clusters).count() < len(clusters):
        raise CannotRestore(f"{deleted.name} cannot be restored: a cluster on which it ran was deleted.")
    tables: dict[str, list[str]] = {}
    for rows in DeletedRows.objects.filter(experiment=deleted).defer("data").order_by("pk"):
        tables.setdefault(rows.table, rows.columns)
    with connection.cursor() as cursor:
        for table, columns in tables.items():
            listed = ", ".join(map(connection.ops.quote_name, columns))
            pieces = _data(deleted, table)
            with cursor.copy(f"COPY {connection.ops.quote_name(table)} ({listed}) FROM STDIN") as copy:
                for data in pieces:
                    copy.write(zstandard.decompress(data))
        _release_missing(cursor, tables)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # violations raise here


def _release_missing(cursor: Any, tables: Iterable[str]) -> None:
    """Apply on_delete of rows that were deleted later: a clone's original, a user.

    ``tables`` has parents first. Constraints are deferred, so that only restored rows can violate one.
    """
    quoted = connection.ops.quote_name
    models = [model for table in tables for model in apps.get_models() if model._meta.db_table == table]
    for model in models:
        for field in model._meta.concrete_fields:
            rule = field.remote_field.on_delete if isinstance(field, ForeignKey) else None
            parent = field.related_model
            if rule is not SET_NULL and (rule is not CASCADE or parent in models):
                continue
            table, column = quoted(model._meta.db_table), quoted(_column(field))
            key, of = quoted(_column(parent._meta.pk)), quoted(parent._meta.db_table)  # type: ignore[union-attr]
            act = f"UPDATE {table} SET {column} = NULL" if rule is SET_NULL else f"DELETE FROM {table}"  # noqa: S608 - own names
            is_orphan = f"NOT EXISTS (SELECT FROM {of} AS parent WHERE parent.{key} = {table}.{column})"
            cursor.execute(f"{act} WHERE {column} IS NOT NULL AND {is_orphan}")


def _data(deleted: Deleted, table: str) -> list[bytes]:
    """Return all pieces of a table: the connection is busy during the COPY."""
    rows = DeletedRows.objects.filter(experiment=deleted, table=table).order_by("pk")
    return [bytes(data) for data in rows.values_list("data", flat=True)]
