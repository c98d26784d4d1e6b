"""Goal of an experiment: when its rounds of trials end, and what they may cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from experiments.common.quantities import FRACTION
from experiments.specification.parameters import Count, Duration, Part, refuse_bool

ANSWERED: Final = "answered"
MOST_REPETITIONS: Final = 30
"""Default of ``at_most``."""
_NARROWEST, _WIDEST = 0.001, 0.5
Hours = Annotated[float, BeforeValidator(refuse_bool), Field(gt=0, le=1e7)]


def _until(value: Any) -> Any:
    """Return ``answered`` or a precision such as ``3 %``. Raise ValueError."""
    text = value.strip() if isinstance(value, str) else value
    if text == ANSWERED:
        return text
    wrong = f"must be {ANSWERED}, or a precision such as 3 %, not {value!r}"
    if isinstance(value, bool) or not isinstance(text, str | int | float):
        raise ValueError(wrong)
    try:
        share = FRACTION.parse(text.removeprefix("precision:").strip() if isinstance(text, str) else text)
    except ValueError:
        raise ValueError(wrong) from None
    if not _NARROWEST <= share <= _WIDEST:
        raise ValueError(f"must be a precision from {FRACTION.format(_NARROWEST)} to {FRACTION.format(_WIDEST)}")
    return FRACTION.format(share)


def _share(value: Any) -> Any:
    share = FRACTION.parse(value) if isinstance(value, str) else refuse_bool(value)
    if isinstance(share, int | float) and not _NARROWEST <= share <= _WIDEST:
        raise ValueError(f"must be from {FRACTION.format(_NARROWEST)} to {FRACTION.format(_WIDEST)}")
    return share


class Budget(Part):
    """Limits of an experiment with a goal; the first that is reached ends it."""

    time: Annotated[Duration, Field(gt=0)] | None = None
    """Running time of its trials."""
    trials: Annotated[Count, Field(ge=1)] | None = None
    host_hours: Hours | None = None
    """Hours that its trials hold hosts."""

    @model_validator(mode="after")
    def _limits_something(self) -> Budget:
        if self.time is None and self.trials is None and self.host_hours is None:
            raise ValueError("set at least one of time, trials and host_hours")
        return self

    def share(self, part: float) -> Budget:
        """Return a part of this budget, at least one trial."""
        trials = None if self.trials is None else max(1, int(self.trials * part))
        time, host_hours = (None if limit is None else limit * part for limit in (self.time, self.host_hours))
        return Budget(time=time, trials=trials, host_hours=host_hours)

    def extended(self, more: Budget) -> Budget:
        """Return this budget with ``more`` added; limits that this one lacks stay absent."""
        limits = {name: has for name in type(self).model_fields if (has := getattr(self, name)) is not None}
        return Budget(**{name: has + (getattr(more, name) or 0) for name, has in limits.items()})


class Goal(Part):
    """The question is asked until it is answered, or the budget is spent."""

    until: Annotated[str, BeforeValidator(_until, json_schema_input_type=str | float)] | None = None
    """answered, or the half-width of the 95 % interval of the deciding metric, such as 3 %."""
    optimise: str | None = None
    """The metric for which the best settings are searched, such as hpl.gflops."""
    matters: Annotated[float, BeforeValidator(_share, json_schema_input_type=float | str), Field(ge=0.001, le=0.5)] = (
        0.02
    )
    """Smallest difference that matters: points within it count as equally good."""
    budget: Budget

    @model_validator(mode="after")
    def _has_one_end(self) -> Goal:
        if (self.until is None) == (self.optimise is None):
            raise ValueError("needs either until (answered, or a precision such as 3 %) or optimise (a metric)")
        return self

    @property
    def precision(self) -> float | None:
        """Return the precision as a share; None: until the question is answered."""
        return None if self.until in (None, ANSWERED) else FRACTION.parse(self.until)


class RepetitionRange(Part):
    """Repetitions of each point: in the first round, and in the end."""

    at_least: Annotated[Count, Field(ge=2, le=1000)] = 3
    at_most: Annotated[Count, Field(ge=2, le=1000)] = MOST_REPETITIONS

    @field_validator("at_most")
    @classmethod
    def _at_least_the_first(cls, value: int, info: Any) -> int:
        if value < info.data.get("at_least", 0):
            raise ValueError(f"must be at least {info.data['at_least']}, as at_least")
        return value


def _kind(value: Any) -> str:
    return "range" if isinstance(value, Mapping | RepetitionRange) else "number"


Repetitions = Annotated[
    Annotated[Count, Field(ge=1, le=1000), Tag("number")] | Annotated[RepetitionRange, Tag("range")],
    Discriminator(_kind),
]
"""A number, or a range if the experiment has a goal."""
