"""What the explorer finds as a file: at once while that is quick, otherwise made in the background and kept for some days."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db.models import QuerySet
from django.http import QueryDict, StreamingHttpResponse

from dashboard.background import asking
from dashboard.background.withdrawn import Withdrawn
from dashboard.requests import concurrency_limits
from dashboard.requests.explore import ROWS, Rows, ask, rows_of, table_of
from experiments.access import limited_to, sees_everything, visible_projects
from experiments.common import plain_files
from experiments.models import BackgroundTask, Configuration
from experiments.selectors.explorer import swept
from experiments.selectors.export import configurations, frames
from experiments.selectors.export.columns import dimensions
from experiments.selectors.export.trials import LONG_PIECE, PIECE, TrialTable, trials_of

FORMATS: Final = {name: kind for name, (kind, _) in frames.FORMATS.items()} | {"csvm": "application/csvm+json"}
"""Form of a file -> its media type; ``csvm`` tells what the columns mean."""
_STEP_ROWS: Final = 500


def exported(user: Any, given: QueryDict, form: str) -> StreamingHttpResponse | BackgroundTask:
    """Return the whole table as a stream of bytes, or the task that makes it where it is large or others are made for ``user``.

    Raise CannotExplore; Busy where as many tasks wait as may.
    """
    table = Export.of(user, given, form)
    if form != "csvm" and table.total > settings.DIRECT_EXPORT_ROWS:
        return _asked(user, given, form, table)
    try:
        slot = concurrency_limits.acquire(user, "export")
    except concurrency_limits.Busy:
        return _asked(user, given, form, table)
    try:
        response = StreamingHttpResponse(
            concurrency_limits.LimitedResponse(table.body(), slot), content_type=FORMATS[form]
        )
        response["Content-Disposition"] = f'attachment; filename="{_filename(form, table.rows.kind)}"'
    except BaseException:
        slot.release()
        raise
    return response


@dataclass(frozen=True, slots=True)
class Export:
    """One table that is asked for: what stands in its rows, of which configurations, as which kind of file."""

    rows: Rows
    form: str
    matching: QuerySet[Configuration]
    metrics: tuple[str, ...]
    scope: str
    total: int
    """Configurations or trials: a row each, or that of its measurements."""

    @classmethod
    def of(cls, user: Any, given: QueryDict, form: str) -> Export:
        """Return what a query string asks for, of what ``user`` may see. Raise CannotExplore."""
        question, asked = ask(user, given), rows_of(given)
        matching = table_of(question)
        counted = question.configurations.order_by()
        total = (counted if asked.kind == ROWS[0] else trials_of(counted, every=asked.every)).count()
        return cls(asked, form, matching, question.look.columns, question.query.scope, total)

    def body(self) -> Iterator[bytes]:
        """The bytes of the file, a piece for each ``step`` rows."""
        if self.rows.kind == ROWS[0]:
            return self._of_configurations()
        table = TrialTable(trials_of(self.matching, every=self.rows.every), long=self.rows.kind == "measurements")
        if self.form == "csvm":
            return iter([json.dumps(dimensions(table.columns), indent=1).encode()])
        return frames.FORMATS[self.form][1](table.pieces(), table.columns)

    @property
    def step(self) -> int:
        """Rows of ``total`` that are in a piece."""
        return {"trials": PIECE, "measurements": LONG_PIECE}.get(self.rows.kind, _STEP_ROWS)

    def _of_configurations(self) -> Iterator[bytes]:
        names = _swept_anywhere(self.matching)
        parameters = ["hosts", "ranks", *(name for name in names if name not in ("hosts", "ranks"))]
        if self.form == "csvm":
            told = configurations.described_columns(parameters, self.metrics)
            return iter([json.dumps(dimensions(told), indent=1).encode()])
        rows = configurations.rows(self.matching, parameters, self.metrics, self.scope)
        return configurations.FORMATS[self.form][1](rows, configurations.columns(parameters, self.metrics))


def filename(task: BackgroundTask) -> str:
    """What the file of a task is called where it is saved."""
    if "bundle" in task.arguments:
        return str(task.arguments["name"])
    return _filename(task.arguments["form"], task.arguments.get("rows", ROWS[0]))


def _filename(form: str, kind: str) -> str:
    return f"rankwire-{kind}.{'csv-metadata.json' if form == 'csvm' else form}"


def _asked(user: Any, given: QueryDict, form: str, table: Export) -> BackgroundTask:
    kind = table.rows.kind
    arguments = {"query": given.urlencode(), "form": form, "rows": kind}
    title = f"Table of {kind} as {form}"
    return asking.ask(user, BackgroundTask.Kind.EXPORT, arguments, title=title, total=table.total)


def write(task: BackgroundTask) -> None:
    """Make the file of a task with what its owner may see now, telling how far it is. Raise CannotExplore, Withdrawn."""
    user = limited_to(task.owner, task.within_id)
    table = Export.of(user, QueryDict(task.arguments["query"]), task.arguments["form"])
    type(task).objects.filter(pk=task.pk).update(total=table.total)
    seen = _seen(user)
    with plain_files.private():
        task.file.parent.mkdir(parents=True, exist_ok=True)
        part = task.file.with_suffix(".part")
        try:
            with part.open("wb") as stream:
                for number, piece in enumerate(table.body(), start=1):
                    stream.write(piece)
                    if not task.tell(min(number * table.step, table.total)):
                        raise Withdrawn
            part.replace(task.file)
        finally:
            part.unlink(missing_ok=True)
    task.tell(table.total)
    if not task.end(seen=seen):
        task.file.unlink(missing_ok=True)


def _seen(user: Any) -> list[int] | None:
    """The projects whose experiments may be in the file; None for all."""
    return None if sees_everything(user) else sorted(visible_projects(user).values_list("pk", flat=True))


def may_fetch(user: Any, task: BackgroundTask) -> bool:
    """Return whether ``user`` may still see all projects that the file was made of."""
    made_of, now = task.arguments.get("seen"), _seen(user)
    return now is None or (made_of is not None and set(made_of) <= set(now))


def _swept_anywhere(matching: QuerySet[Configuration]) -> list[str]:
    """Every parameter that an experiment of the table sweeps; one configuration stands for each experiment."""
    first = matching.order_by("experiment_id", "pk").distinct("experiment_id")
    return swept(first)
