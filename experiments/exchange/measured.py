"""External results in a YAML file, checked as a specification is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, Final, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    StringConstraints,
    ValidationError,
)
from pydantic import model_validator as checks

from experiments import workloads
from experiments.common import budget
from experiments.common.storable import problems
from experiments.errors import FieldError, InvalidSpec
from experiments.exchange.archive import is_safe_path
from experiments.exchange.table import COUNTS, DECIMAL, Table, read_table
from experiments.metrics import is_metric, why_impossible
from experiments.specification.parameters import (
    LAUNCH_PARAMETERS,
    LINK_PARAMETERS,
    MOST_ERRORS,
    canonical,
    is_text,
    known_parameters,
    refusal,
)
from experiments.specification.yaml_lines import YamlDocument
from experiments.workloads.template import text_paths

MOST_TRIALS: Final = 2000
MOST_RANKS: Final = 1_000_000
_LONGEST_METRIC: Final = 80
_FIRST_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_TIME: Final = datetime(9000, 1, 1, tzinfo=UTC)
"""Bounds of the times of runs: PostgreSQL, Python and browsers read all between them."""
_TAKEN: Final = "analysis.json.zst"
"""Name of the analysis of a capture, which is stored with these files."""
_Name = Annotated[str, StringConstraints(min_length=1, max_length=120, strip_whitespace=True)]
_Location = Annotated[str, StringConstraints(min_length=1, max_length=300)]


def _figure(value: Any) -> Any:
    """Return a figure. Raise ValueError for true and ``1_000``."""
    if isinstance(value, bool) or (isinstance(value, str) and not DECIMAL.fullmatch(value)):
        raise ValueError(f"must be a number, not {_written(value)}")
    return value


def _written(value: Any) -> str:
    """Return a value of plain data as it is written in YAML, cut to a readable length."""
    text = json.dumps(value, ensure_ascii=False) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


class _Described(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DescribedTrial(_Described):
    """One run; the parser of the workload reads its ``output`` and ``files``."""

    parameters: dict[str, Any] = {}
    figures: dict[str, Annotated[FiniteFloat, BeforeValidator(_figure)]] = {}
    output: _Location | None = None
    files: Annotated[list[_Location], Field(max_length=20)] = []
    capture: _Location | None = None
    command: list[str] = []
    ended_at: Annotated[AwareDatetime, Field(ge=_FIRST_TIME, lt=_LAST_TIME)] | None = None

    @checks(mode="after")
    def _says_something(self) -> Self:
        if not self.figures and self.output is None and self.capture is None:
            raise ValueError("gives neither figures nor an output nor a capture")
        if self.files and self.output is None:
            raise ValueError("files are read together with an output, and there is none")
        return self

    @property
    def places(self) -> list[tuple[str, str]]:
        """Return (path of the field, name of the file) of all its files."""
        named = [("output", self.output), ("capture", self.capture)]
        listed = [(f"files.{number}", file) for number, file in enumerate(self.files)]
        return [(field, file) for field, file in [*named, *listed] if file is not None]


class DescribedRuns(_Described):
    """A set of runs of one program on one cluster."""

    name: _Name
    workload: Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9_.-]+$")]
    cluster: Annotated[str, StringConstraints(min_length=1, max_length=60, strip_whitespace=True)]
    source: Annotated[str, StringConstraints(max_length=300)] = ""
    licence: Annotated[str, StringConstraints(max_length=300)] = ""
    tags: Annotated[list[Annotated[str, StringConstraints(max_length=40)]], Field(max_length=20)] = []
    parameters: dict[str, Any] = {}
    """Parameters of every trial; a trial's own take precedence."""
    trials: Annotated[list[DescribedTrial], Field(min_length=1, max_length=MOST_TRIALS)]

    def points(self) -> list[dict[str, Any]]:
        """Return the parameters of each trial in base units. Raise InvalidSpec."""
        errors: list[FieldError] = []
        points = [self._point(number, errors) for number in range(len(self.trials))]
        if errors := errors or [*self._pooled(points), *_too_large(points)]:
            raise InvalidSpec(errors)
        return points

    def _pooled(self, points: list[dict[str, Any]]) -> Iterator[FieldError]:
        """Yield values that differ only as written, and lists that differ."""
        firsts: dict[tuple[str, str], str] = {}
        for number, point in enumerate(points):
            for name, value in point.items():
                is_listed = isinstance(value, list | dict)
                equal = (
                    "" if is_listed else repr(int(value) if isinstance(value, float) and value.is_integer() else value)
                )
                if (first := firsts.setdefault((name, equal), repr(value))) != repr(value):
                    same = f"{first} and {value!r} are one value: write it in one way"
                    yield FieldError(
                        self._path(number, name),
                        "is a list, which has to be the same in all trials" if is_listed else same,
                    )

    def _path(self, number: int, name: str) -> str:
        is_own = name in self.trials[number].parameters
        return f"trials.{number}.parameters.{name}" if is_own else f"parameters.{name}"

    def _point(self, number: int, errors: list[FieldError]) -> dict[str, Any]:
        all_parameters = {"hosts": 1, **self.parameters, **self.trials[number].parameters}
        names = _names_of(self.workload, all_parameters).difference(LAUNCH_PARAMETERS)
        point: dict[str, Any] = {}
        for name, value in all_parameters.items():
            try:
                point[name] = self._value(name, value, all_parameters, names)
            except ValueError as error:
                errors.append(FieldError(self._path(number, name), str(error)))
        return point

    def _value(self, name: str, value: Any, all_parameters: dict[str, Any], names: set[str]) -> Any:
        if name in names or name in LINK_PARAMETERS:
            return canonical(self.workload, name, value, all_parameters)
        if name in COUNTS:
            if not _is_count(value):
                raise ValueError(f"{_written(value)} is no count")
        elif isinstance(value, bool):
            raise ValueError(f"{_written(value)} is neither a number nor a text: write '{_written(value)}' with quotes")
        elif not isinstance(value, int | float | str):
            raise ValueError(f"{_written(value)} is neither a number nor a text")
        return value


def _names_of(workload: str, values: dict[str, Any]) -> set[str]:
    """Return the parameters of a workload with these values; none of an unknown one.

    Counts as processor time: a definition may be long, and each trial may have another.
    """
    budget.check()
    return known_parameters(workload, values) if workloads.find(workload, values) is not None else set()


def ranks_of(point: dict[str, Any]) -> int:
    """Return the ranks of a point: as given, else ``ranks_per_host`` or one a host."""
    return int(point.get("ranks", point["hosts"] * point.get("ranks_per_host", 1)))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_RANKS


def _too_large(points: list[dict[str, Any]]) -> Iterator[FieldError]:
    for number, point in enumerate(points):
        if ranks_of(point) > MOST_RANKS:
            yield FieldError(f"trials.{number}", f"has {ranks_of(point)} ranks; the most is {MOST_RANKS}")


def read_measured(text: str, table: str | None = None) -> tuple[DescribedRuns, list[dict[str, Any]]]:
    """Return the description and the parameters of each of its trials.

    With ``table``, comma-separated values, the trials are there and all else is in the description; an error of a trial then has the line
    and the column of the table. Raise InvalidSpec with paths and lines.
    """
    document = YamlDocument(text)
    rows = None if table is None else read_table(table)
    try:
        data = document.data
        if not isinstance(data, dict):
            raise InvalidSpec([FieldError("", "a description is a mapping of fields: name, workload, cluster, trials")])
        if rows is not None:
            if "trials" in data:
                raise InvalidSpec([FieldError("trials", "are in the table: leave them out here")])
            data = {**data, "trials": rows.trials}
        if altered := list(document.altered(*_text_paths(data))):
            raise InvalidSpec(altered)
        return checked(data)
    except InvalidSpec as error:
        raise InvalidSpec(_lined(error, document, rows) for error in error.errors) from None


def _text_paths(data: dict[str, Any]) -> Iterator[str]:
    """Yield the paths of parameters that no definition makes numbers of."""
    workload, common, trials = data.get("workload"), data.get("parameters"), data.get("trials")
    common = common if isinstance(common, dict) else {}
    listed = (
        [trial.get("parameters") if isinstance(trial, dict) else None for trial in trials or ()]
        if isinstance(trials, list)
        else []
    )
    for path, values in [("parameters", common), *((f"trials.{n}.parameters", item) for n, item in enumerate(listed))]:
        if not isinstance(values, dict) or not isinstance(workload, str):
            continue
        every = {**common, **values}
        names = _names_of(workload, every)
        numeric = {name for name in (*names, *LINK_PARAMETERS) if not is_text(workload, name, every)} | {*COUNTS}
        yield from (f"{path}.{name}" for name in values if name not in numeric)
        yield from (f"{path}.{field}" for field in text_paths(values))


def checked(data: dict[str, Any]) -> tuple[DescribedRuns, list[dict[str, Any]]]:
    """Return the description and the parameters of its trials. Raise InvalidSpec."""
    if wrong := list(islice(problems(data), MOST_ERRORS)):
        raise InvalidSpec(wrong)
    described = _validated(data)
    if errors := [*_wrong_figures(described), *_wrong_places(described)]:
        raise InvalidSpec(errors)
    return described, described.points()


def _lined(error: FieldError, document: YamlDocument, rows: Table | None) -> FieldError:
    """Return the error at a line of the table, or of the description."""
    if rows is None:
        return FieldError(error.path, error.message, error.line or document.line(error.path))
    if error.path.startswith("trials."):
        return rows.placed(error)
    return FieldError(error.path, f"{error.message} (in the description beside the table)", document.line(error.path))


def _validated(data: dict[str, Any]) -> DescribedRuns:
    try:
        return DescribedRuns.model_validate(data)
    except ValidationError as error:
        raise refusal(error) from None


def _wrong_figures(described: DescribedRuns) -> list[FieldError]:
    """Return an error for each figure that is no metric, or impossible."""
    return [
        FieldError(f"trials.{number}.figures.{name}", why)
        for number, trial in enumerate(described.trials)
        for name, value in trial.figures.items()
        if (why := _why_wrong(name, value))
    ]


def _why_wrong(name: str, value: float) -> str:
    if not is_metric(name) or len(name) > _LONGEST_METRIC:
        return f"there is no metric {name[:_LONGEST_METRIC]!r}: see the catalogue of metrics"
    return why_impossible(name, value)


def _wrong_places(described: DescribedRuns) -> list[FieldError]:
    wrong = []
    for number, trial in enumerate(described.trials):
        wrong += [
            FieldError(f"trials.{number}.{field}", "must be the name of a file beside the description, or below it")
            for field, file in trial.places
            if not is_safe_path(file)
        ]
        names = [file.rpartition("/")[2] for _, file in trial.places]
        if len({*names, _TAKEN}) <= len(names):
            wrong.append(FieldError(f"trials.{number}", f"two of its files have one name, or one is called {_TAKEN}"))
        if trial.output is not None and workloads.find(described.workload, trial.parameters) is None:
            words = f"the workload {described.workload!r} is not known here, so its output cannot be read"
            wrong.append(FieldError(f"trials.{number}.output", words))
    return wrong
