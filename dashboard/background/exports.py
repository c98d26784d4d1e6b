"""Exported tables of the explorer: streamed or made in the background."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from django.conf import settings
from django.db.models import Func, IntegerField, Max, QuerySet, TextField
from django.db.models.functions import Cast, Length
from django.http import QueryDict, StreamingHttpResponse

from dashboard.background import asking
from dashboard.background.asking import Withdrawn
from dashboard.requests import concurrency_limits
from dashboard.requests.explore import ROWS, ExportRows, parse_question, rows_of, table_of
from experiments import workloads
from experiments.access import limited_to, sees_everything, visible_projects
from experiments.common import plain_files
from experiments.metrics import deciding_metric
from experiments.models import BackgroundTask, Configuration
from experiments.selectors.explorer import swept
from experiments.selectors.export import configurations, frames
from experiments.selectors.export.columns import CONTENT_TYPES, dimensions
from experiments.selectors.export.trials import LONG_PIECE, PIECE, TrialTable, trials_of
from experiments.selectors.quotas import export_limits

FORMATS: Final = CONTENT_TYPES | {"csvm": "application/csvm+json"}
"""Form of a file -> its media type; ``csvm`` describes the columns."""
_STEP_ROWS: Final = 500
_DIRECT_BYTES: Final = 256 << 20
"""Longer ones have the limits of a background task; a stream has none."""
_ROW_BYTES: Final = 300
_VALUE_BYTES: Final = 25
_SLUG: Final = re.compile(r"[-\w]{1,100}", re.ASCII)


def exported(user: Any, query: QueryDict, form: str, address: str) -> StreamingHttpResponse | BackgroundTask:
    """Return a small table as a stream, otherwise the task that makes it.

    Links of a stream begin with ``address``, that of the request; those of a task with the address of the settings.
    Raise CannotExplore, or Busy if too many tasks wait.
    """
    table = replace(Export.of(user, query, form), address=address)
    if form != "csvm" and (table.total > settings.DIRECT_EXPORT_ROWS or table.longest() > _DIRECT_BYTES):
        return _task(user, query, form, table)
    try:
        slot = concurrency_limits.acquire(user, "export")
    except concurrency_limits.Busy:
        return _task(user, query, form, table)
    try:
        response = StreamingHttpResponse(
            concurrency_limits.LimitedResponse(table.body(), slot), content_type=FORMATS[form]
        )
        response["Content-Disposition"] = f'attachment; filename="{_filename(form, table.rows.kind, query)}"'
    except BaseException:
        slot.release()
        raise
    return response


@dataclass(frozen=True, slots=True)
class Export:
    """A requested table: kind of rows, configurations and form of the file."""

    rows: ExportRows
    form: str
    matching: QuerySet[Configuration]
    metrics: tuple[str, ...]
    scope: str
    total: int
    """Number of configurations or trials."""
    address: str
    """Address with which links begin."""

    @classmethod
    def of(cls, user: Any, query: QueryDict, form: str) -> Export:
        """Return the table of a query, as ``user`` may see it. Raise CannotExplore."""
        question, rows = parse_question(user, query), rows_of(query)
        matching = table_of(question)
        counted = question.configurations.order_by()
        total = (counted if rows.kind == ROWS[0] else trials_of(counted, every=rows.every)).count()
        return cls(rows, form, matching, question.look.columns, question.query.scope, total, settings.PUBLIC_ADDRESS)

    def longest(self) -> int:
        """Return about the most bytes of the file: each row has all parameters."""
        written = Length(Cast("parameters", TextField()))
        row = (self.matching.order_by().aggregate(most=Max(written))["most"] or 0) + _ROW_BYTES
        if self.rows.kind == ROWS[0]:
            return self.total * row
        trials = trials_of(self.matching, every=self.rows.every)
        count = Func("as_array__names__names", function="cardinality", output_field=IntegerField())
        values = trials.order_by().aggregate(most=Max(count))["most"] or 0
        return self.total * (values * row if self.rows.kind == "measurements" else row + values * _VALUE_BYTES)

    def body(self) -> Iterator[bytes]:
        """Yield the bytes of the file, a piece per ``step`` rows."""
        if self.rows.kind == ROWS[0]:
            return self._of_configurations()
        trials = trials_of(self.matching, every=self.rows.every)
        table = TrialTable(trials, long=self.rows.kind == "measurements", brief=self._brief(), address=self.address)
        if self.form == "csvm":
            return iter([json.dumps(dimensions(table.columns), indent=1).encode()])
        return frames.WRITERS[self.form](table.pieces(), table.columns)

    def _brief(self) -> Collection[str]:
        """Return the swept parameters and metrics of a brief table; empty of others."""
        if self.rows.kind != "brief":
            return ()
        first = list(self.matching.order_by("experiment_id", "pk").distinct("experiment_id"))
        figures = set()
        for written in [row.experiment for row in first]:
            workload = workloads.find(written.workload, written.specification.get("parameters"))
            figures |= {deciding_metric(written.workload, written.specification)}
            figures |= {figure.id for figure in workload.figures} if workload else set()
        return {*self.metrics, *figures, *(f"parameter.{name}" for name in swept(first))}

    @property
    def step(self) -> int:
        """Number of rows in a piece."""
        return {"trials": PIECE, "brief": PIECE, "measurements": LONG_PIECE}.get(self.rows.kind, _STEP_ROWS)

    def _of_configurations(self) -> Iterator[bytes]:
        names = _swept_anywhere(self.matching)
        parameters = ["hosts", "ranks", *(name for name in names if name not in ("hosts", "ranks"))]
        if self.form == "csvm":
            columns = configurations.described_columns(parameters, self.metrics)
            return iter([json.dumps(dimensions(columns), indent=1).encode()])
        rows = configurations.rows(self.matching, parameters, self.metrics, self.scope, self.address)
        return configurations.WRITERS[self.form](rows, configurations.columns(parameters, self.metrics))


def filename(task: BackgroundTask) -> str:
    """Return the name of the file of a task."""
    if "bundle" in task.arguments:
        return str(task.arguments["name"])
    return _filename(
        task.arguments["form"], task.arguments.get("rows", ROWS[0]), QueryDict(task.arguments.get("query", ""))
    )


def _filename(form: str, kind: str, query: QueryDict) -> str:
    """Return "rankwire-SLUG-trials.csv"; several experiments have no slug."""
    slugs = ",".join(query.getlist("experiment"))
    parts = ["rankwire", *([slugs] if _SLUG.fullmatch(slugs) else []), kind]
    return f"{'-'.join(parts)}.{'csv-metadata.json' if form == 'csvm' else form}"


def _task(user: Any, query: QueryDict, form: str, table: Export) -> BackgroundTask:
    kind = table.rows.kind
    arguments = {"query": query.urlencode(), "form": form, "rows": kind}
    title = f"Table of {kind} as {form}"
    return asking.ask(user, BackgroundTask.Kind.EXPORT, arguments, title=title, total=table.total)


def write(task: BackgroundTask) -> None:
    """Write what the owner may see to a file. Raise CannotExplore, Withdrawn."""
    user = limited_to(task.owner, task.within_id)
    table = Export.of(user, QueryDict(task.arguments["query"]), task.arguments["form"])
    type(task).objects.filter(pk=task.pk).update(total=table.total)
    seen = _seen(user)
    with plain_files.private():
        task.file.parent.mkdir(parents=True, exist_ok=True)
        part = task.file.with_suffix(".part")
        try:
            with part.open("wb") as stream:
                check = export_limits(stream, task.owner.get_username())
                for number, piece in enumerate(table.body(), start=1):
                    stream.write(piece)
                    check()
                    if not task.tell(min(number * table.step, table.total)):
                        raise Withdrawn
            part.replace(task.file)
        finally:
            part.unlink(missing_ok=True)
    task.tell(table.total)
    if not task.end(seen=seen):
        task.file.unlink(missing_ok=True)


def _seen(user: Any) -> list[int] | None:
    """Return the projects whose experiments may be in the file; None for all."""
    return None if sees_everything(user) else sorted(visible_projects(user).values_list("pk", flat=True))


def may_fetch(user: Any, task: BackgroundTask) -> bool:
    """Return True if ``user`` may still see all projects of the file."""
    projects, visible = task.arguments.get("seen"), _seen(user)
    return visible is None or (projects is not None and set(projects) <= set(visible))


def _swept_anywhere(matching: QuerySet[Configuration]) -> list[str]:
    first = matching.order_by("experiment_id", "pk").distinct("experiment_id")
    return swept(first)
