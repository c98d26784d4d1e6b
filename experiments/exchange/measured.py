"""External results in a YAML file, checked as a specification is."""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StringConstraints, ValidationError
from pydantic import model_validator as checks

from experiments import workloads
from experiments.common.storable import problems
from experiments.errors import FieldError, InvalidSpec
from experiments.exchange.archive import is_safe_path
from experiments.exchange.records import Moment
from experiments.exchange.table import Table, read_table
from experiments.metrics import is_metric
from experiments.specification.parameters import canonical, known_parameters, refusal
from experiments.specification.yaml_lines import YamlDocument

MOST_TRIALS: Final = 2000
_TAKEN: Final = "analysis.json.zst"
"""Name of the analysis of a capture, which is stored with these files."""
_Name = Annotated[str, StringConstraints(min_length=1, max_length=120, strip_whitespace=True)]
_Place = Annotated[str, StringConstraints(min_length=1, max_length=300)]


class _Described(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DescribedTrial(_Described):
    """One run; the parser of the workload reads its ``output`` and ``files``."""

    parameters: dict[str, Any] = {}
    figures: dict[str, FiniteFloat] = {}
    output: _Place | None = None
    files: Annotated[list[_Place], Field(max_length=20)] = []
    capture: _Place | None = None
    command: list[str] = []
    ended_at: Moment | None = None

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
        if errors:
            raise InvalidSpec(errors)
        return points

    def _point(self, number: int, errors: list[FieldError]) -> dict[str, Any]:
        own_parameters = self.trials[number].parameters
        all_parameters = {"hosts": 1, **self.parameters, **own_parameters}
        point: dict[str, Any] = {}
        for name, value in all_parameters.items():
            try:
                point[name] = self._value(name, value, all_parameters)
            except ValueError as error:
                path = f"trials.{number}.parameters.{name}" if name in own_parameters else f"parameters.{name}"
                errors.append(FieldError(path, str(error)))
        return point

    def _value(self, name: str, value: Any, all_parameters: dict[str, Any]) -> Any:
        names = (
            known_parameters(self.workload, all_parameters)
            if workloads.find(self.workload, all_parameters) is not None
            else set()
        )
        if name in names:
            return canonical(self.workload, name, value, all_parameters)
        if name in ("hosts", "ranks", "ranks_per_host"):
            if not _is_count(value):
                raise ValueError(f"{value!r} is no count")
        elif isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(f"{value!r} is neither a number nor a text")
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{value!r} is no finite number")
        return value


def ranks_of(point: dict[str, Any]) -> int:
    """Return the ranks of a point: as given, else ``ranks_per_host`` or one a host."""
    return int(point.get("ranks", point["hosts"] * point.get("ranks_per_host", 1)))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1_000_000


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
        return checked(data)
    except InvalidSpec as error:
        raise InvalidSpec(_lined(error, document, rows) for error in error.errors) from None


def checked(data: dict[str, Any]) -> tuple[DescribedRuns, list[dict[str, Any]]]:
    """Return the description and the parameters of its trials. Raise InvalidSpec."""
    if wrong := list(problems(data)):
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
    """Return an error for each figure whose name is not a metric."""
    return [
        FieldError(f"trials.{number}.figures.{name}", f"there is no metric {name!r}: see the catalogue of metrics")
        for number, trial in enumerate(described.trials)
        for name in trial.figures
        if not is_metric(name)
    ]


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
