"""Query strings of the list of trials: filters, order and columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from django.db.models import Exists, F, QuerySet
from django.http import QueryDict
from pydantic import AwareDatetime, Field, TypeAdapter

from dashboard.filters import TrialPageFilter
from dashboard.requests.columns import SortHeader, names_in, sort_header
from dashboard.requests.keyset import Key, Listing
from experiments.access import visible_trials
from experiments.errors import CannotExplore
from experiments.metrics import described, is_metric
from experiments.models import Measurement, Trial
from experiments.selectors.configuration_values import measurements

DEFAULT_COLUMNS: Final = ("elapsed_s", "cpu_mean_rank_s", "packets", "throughput_Bps")
MOST_COLUMNS: Final = 12
_METRIC: Final = "measurements__value"
_LONG: Final = (
    *("traceback", "tables", "progress", "certificate", "command", "not_available", "trust_reasons", "conditions"),
)
"""Long columns of a trial that no list shows."""


_whole: Final = TypeAdapter(Annotated[int, Field(strict=True, gt=-(2**31), lt=2**31)]).validate_python
_number: Final = TypeAdapter(Annotated[float, Field(strict=True, allow_inf_nan=False)]).validate_python
_text: Final = TypeAdapter(Annotated[str, Field(strict=True, pattern=r"^[^\x00]*$")]).validate_python


def _moment(value: Any) -> datetime:
    moment = TypeAdapter(AwareDatetime).validate_python(_text(value))
    return moment.astimezone(UTC)  # PostgreSQL refuses offsets of more than 16 hours


@dataclass(frozen=True, slots=True)
class Sort:
    """A named order of a list; ``first`` is the direction of the first click."""

    title: str
    key: Key
    first: str = ""


SORTS: Final = {
    "id": Sort("Trial", Key("pk"), "-"),
    "experiment": Sort("Experiment", Key("experiment__name", read=_text)),
    "hosts": Sort("Hosts", Key("configuration__hosts", read=_whole)),
    "ended": Sort("Ended", Key("ended_at", read=_moment), "-"),
}
NEWEST: Final = "-id"


@dataclass(frozen=True, slots=True)
class TrialQuestion:
    """A parsed query string of the list of trials."""

    filters: TrialPageFilter
    listing: Listing
    sort: str
    columns: tuple[str, ...]


def parse_trial_question(user: Any, params: QueryDict) -> TrialQuestion:
    """Return the parsed query string, limited to visible trials. Raise CannotExplore."""
    filters = TrialPageFilter.of_page(params, visible_trials(user, by_keys=True))
    columns = read_columns(params.getlist("columns"))
    sort = params.get("sort", "").strip() or NEWEST
    trials = filters.matching.select_related("configuration", "cluster").defer(*_LONG)
    return TrialQuestion(filters, _listing(trials, _key(sort), sort), sort, columns)


def _listing(trials: QuerySet[Trial], key: Key, sort: str) -> Listing:
    if key.column == _METRIC:
        return by_metric(trials, sort.removeprefix("-"), descending=key.descending)
    if "__" in key.column:
        return Listing(Key("sort_value", key.descending, key.read), trials.annotate(sort_value=F(key.column)))
    if key.column == "ended_at":
        return Listing(key, trials.filter(ended_at__isnull=False), trials.filter(ended_at=None))
    return Listing(key, trials)


def by_metric(trials: QuerySet[Trial], metric: str, *, descending: bool, scope: str = Measurement.Scope.ALL) -> Listing:
    """Return ``trials`` by the value of a metric, those without one last."""
    return by_value(trials, _METRIC, measurements, metric, descending=descending, scope=scope)


def by_value(
    rows: QuerySet[Any],
    column: str,
    values_of: Callable[[str, str], Any],
    metric: str,
    *,
    descending: bool,
    scope: str,
) -> Listing:
    """Return rows by a metric in another table's ``column``.

    ``values_of`` selects it for the row of a query.
    """
    table = column.partition("__")[0]
    # An annotation, so that the position of a row needs no query.
    valued = rows.filter(**{f"{table}__metric": metric, f"{table}__scope": scope}).annotate(sort_value=F(column))
    return Listing(Key("sort_value", descending, _number), valued, rows.filter(~Exists(values_of(metric, scope))))


def read_columns(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the named metrics, each once. Raise CannotExplore."""
    names = names_in(texts)
    for name in names:
        if not is_metric(name):
            raise CannotExplore(f"Columns: {name[:80]!r} is not a metric.", field="columns")
    if len(names) > MOST_COLUMNS:
        raise CannotExplore(f"Columns: at most {MOST_COLUMNS} metrics fit in one table.", field="columns")
    return names or DEFAULT_COLUMNS


def _key(sort: str) -> Key:
    name, descending = sort.removeprefix("-"), sort.startswith("-")
    if name in SORTS:
        definition = SORTS[name].key
        return Key(definition.column, descending, definition.read)
    if is_metric(name):
        return Key(_METRIC, descending, _number)
    raise CannotExplore(f"Order: {name[:80]!r} is neither a metric nor one of {', '.join(SORTS)}.", field="sort")


def trial_header(name: str, sort: str, *, unit: str = "") -> SortHeader:
    """Return the header of a column for the current ``sort``."""
    definition = SORTS.get(name)
    title = definition.title if definition else described(name).label
    return sort_header(name, title, sort, first=definition.first if definition else "", unit=unit)
