"""The explorer's table as a file: at once while that is quick, otherwise made in the background and kept for some days."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.db.models import QuerySet
from django.http import QueryDict, StreamingHttpResponse

from dashboard import seats
from dashboard.background.withdrawn import Withdrawn
from dashboard.explore import Question, ask, table_of
from experiments import plain_files
from experiments.access import limited_to, only_project, sees_everything, visible_projects
from experiments.errors import TooMuchAtOnce
from experiments.models import BackgroundTask, Configuration
from experiments.selectors.explorer import swept
from experiments.selectors.explorer_export import FORMATS, columns, rows
from workers import queue

_STEP_ROWS: Final = 500


def exported(user: Any, given: QueryDict, form: str) -> StreamingHttpResponse | BackgroundTask:
    """Return the whole table as a stream of bytes, or the task that makes it where it is large.

    Raise CannotExplore; Busy while others are made for ``user``.
    """
    question = ask(user, given)
    total = question.configurations.order_by().count()
    if total > settings.DIRECT_EXPORT_ROWS:
        return _asked(user, given, form, total)
    taken = seats.take(user, "export")
    try:
        response = StreamingHttpResponse(seats.Seated(_body(question, form), taken), content_type=FORMATS[form][0])
        response["Content-Disposition"] = f'attachment; filename="{filename(form)}"'
    except BaseException:
        taken.leave()
        raise
    return response


def filename(form: str) -> str:
    """What the file is called where it is saved."""
    return f"rankwire-explore.{form}"


def _asked(user: Any, given: QueryDict, form: str, total: int) -> BackgroundTask:
    try:
        task = BackgroundTask.ask(
            user,
            BackgroundTask.Kind.EXPORT,
            {"query": given.urlencode(), "form": form},
            title=f"Table of the explorer as {form}",
            total=total,
            within=only_project(user),
        )
    except TooMuchAtOnce as error:
        raise seats.Busy(str(error)) from None
    queue.ring_background()
    return task


def write(task: BackgroundTask) -> None:
    """Make the file of a task with what its owner may see now, telling how far it is. Raise CannotExplore, Withdrawn."""
    user = limited_to(task.owner, task.within_id)
    form = task.arguments["form"]
    question = ask(user, QueryDict(task.arguments["query"]))
    total = question.configurations.order_by().count()
    type(task).objects.filter(pk=task.pk).update(total=total)
    seen = _seen(user)
    with plain_files.private():
        task.file.parent.mkdir(parents=True, exist_ok=True)
        part = task.file.with_suffix(".part")
        try:
            with part.open("wb") as stream:
                for number, piece in enumerate(_body(question, form), start=1):
                    stream.write(piece)
                    if not task.tell(min(number * _STEP_ROWS, total)):
                        raise Withdrawn
            part.replace(task.file)
        finally:
            part.unlink(missing_ok=True)
    task.tell(total)
    if not task.end(seen=seen):
        task.file.unlink(missing_ok=True)


def _seen(user: Any) -> list[int] | None:
    """The projects whose experiments may be in the file; None for all."""
    return None if sees_everything(user) else sorted(visible_projects(user).values_list("pk", flat=True))


def may_fetch(user: Any, task: BackgroundTask) -> bool:
    """Return whether ``user`` may still see all projects that the file was made of."""
    made_of, now = task.arguments.get("seen"), _seen(user)
    return now is None or (made_of is not None and set(made_of) <= set(now))


def _body(question: Question, form: str) -> Any:
    """The bytes of the table, one piece for each so many rows."""
    matching, look = table_of(question), question.look
    parameters = ["hosts", "ranks", *(name for name in _swept_anywhere(matching) if name not in ("hosts", "ranks"))]
    table = rows(matching, parameters, look.columns, question.query.scope)
    return FORMATS[form][1](table, columns(parameters, look.columns))


def _swept_anywhere(matching: QuerySet[Configuration]) -> list[str]:
    """Every parameter that an experiment of the table sweeps; one configuration stands for each experiment."""
    first = matching.order_by("experiment_id", "pk").distinct("experiment_id")
    return swept(first)
