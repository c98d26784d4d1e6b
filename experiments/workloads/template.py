"""The templates of a command: typed placeholders, put into argv items and input files and nowhere else. No shell is ever involved."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, field_validator, model_validator

from experiments.workloads.base import Mismatch, Parameters
from experiments.workloads.patterns import compiled

MAX_ITEM: Final = 4096
RANKS: Final = "ranks"
"""The one placeholder that needs no definition: the number of ranks."""
PLAIN_TEXT: Final = r"[A-Za-z0-9_][A-Za-z0-9_.,+=@%-]*"
"""What a text placeholder may hold unless its definition says otherwise: no leading dash, no slash, nothing a program might expand."""

PLACEHOLDER_NAME: Final = "^[a-z][a-z0-9_]{0,39}$"
MOST_WORDS: Final = 200
"""Of a program with its arguments."""
MOST_PLACEHOLDERS: Final = 50
_NAME: Final = re.compile(PLACEHOLDER_NAME)
_IN_TEXT: Final = re.compile(r"\{\{(?P<literal>[a-z][a-z0-9_]{0,39})\}\}|(?<!\$)\{(?P<name>[a-z][a-z0-9_]{0,39})\}")


class Placeholder(BaseModel):
    """A typed parameter of a command, which can be swept like any other."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["integer", "number", "text"] = "integer"
    default: int | float | str | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: list[int | float | str] | None = Field(None, min_length=1, max_length=100)
    pattern: str | None = Field(None, min_length=1, max_length=200, description="What a text must match as a whole.")
    title: str = Field("", max_length=80)
    description: str = Field("", max_length=300)
    unit: str = Field("", max_length=20)

    @model_validator(mode="after")
    def _coherent(self) -> Placeholder:
        if self.type == "text" and (self.minimum is not None or self.maximum is not None):
            raise ValueError("a text has no minimum and no maximum")
        if self.type != "text" and self.pattern is not None:
            raise ValueError("only a text has a pattern")
        if self.pattern is not None:
            compiled(self.pattern)
        if self.default is not None:
            self.checked(self.default)
        return self

    def checked(self, value: Any) -> Any:
        """Return the value in its type. Raise ValueError with a reader's sentence."""
        typed = self._typed(value)
        if self.choices is not None and typed not in self.choices:
            raise ValueError(f"must be one of {', '.join(map(str, self.choices))}, not {value!r}")
        if isinstance(typed, str):
            if self.choices is None and not compiled(self.pattern or PLAIN_TEXT).fullmatch(typed):
                raise ValueError(f"{value!r} does not match {self.pattern or PLAIN_TEXT}")
        elif self.minimum is not None and typed < self.minimum:
            raise ValueError(f"must be at least {self.minimum:g}, not {value!r}")
        elif self.maximum is not None and typed > self.maximum:
            raise ValueError(f"must be at most {self.maximum:g}, not {value!r}")
        return typed

    def _typed(self, value: Any) -> int | float | str:
        if self.type == "text":
            text = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
            if text is None or len(text) > 200 or not text.isprintable():
                raise ValueError(f"{value!r} is not a short printable text")
            return text
        try:
            number = float(value) if not isinstance(value, bool) else float("nan")
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if not abs(number) < 1e18:
            raise ValueError(f"must be a number, not {value!r}")
        if self.type == "integer":
            if not number.is_integer():
                raise ValueError(f"must be a whole number, not {value!r}")
            return int(number)
        return number


class Definition(Parameters):
    """What a maintainer writes to define a command: the constants of its parameters."""

    program: list[str] = Field(max_length=MOST_WORDS)
    placeholders: dict[str, Placeholder] = Field(default_factory=dict, max_length=MOST_PLACEHOLDERS)

    @field_validator("program")
    @classmethod
    def _readable(cls, program: list[str]) -> list[str]:
        for item in program:
            if not item or len(item) > MAX_ITEM or not item.isprintable():
                raise ValueError(f"{item[:80]!r} is not a printable argument of 1 to {MAX_ITEM} characters")
            names_in(item)
        if names_in(program[0]) or program[0].startswith("-"):
            raise ValueError("the program itself is a fixed name, without placeholders")
        return program

    @field_validator("placeholders")
    @classmethod
    def _named(cls, placeholders: dict[str, Placeholder]) -> dict[str, Placeholder]:
        for name in placeholders:
            if not _NAME.fullmatch(name) or name in RESERVED or hasattr(Parameters, name):
                raise ValueError(f"{name!r} cannot be the name of a placeholder")
        return placeholders


RESERVED: Final = frozenset(
    (
        *(RANKS, "hosts", "ranks_per_host", "link", "program", "placeholders", "extract", "inputs", "decks"),
        *("success", "failure", "environment", "modules", "container", "parts", "keep"),
    )
)


def names_in(item: str) -> list[str]:
    """Return the placeholders of one item; ``{{`` and ``}}`` stand for braces. Raise ValueError for anything but plain names."""
    try:
        parts = list(Formatter().parse(item))
    except ValueError as error:
        raise ValueError(f"{item!r}: {error}; write {{{{ and }}}} for braces") from None
    names = []
    for _, name, format_spec, conversion in parts:
        if name is None:
            continue
        if format_spec or conversion or not _NAME.fullmatch(name):
            raise ValueError(f"{item!r}: a placeholder is a plain name in braces, such as {{steps}}")
        names.append(name)
    return names


def with_placeholders(base: type[Parameters], placeholders: Mapping[str, Placeholder]) -> type[Parameters]:
    """Return ``base`` with one more field for each placeholder, typed and checked by its definition."""
    fields: dict[str, Any] = {}
    for name, placeholder in placeholders.items():
        kind = {"integer": int, "number": float, "text": str}[placeholder.type]
        extra: dict[str, Any] = {"unit": placeholder.unit}
        fields[name] = (
            Annotated[kind, BeforeValidator(placeholder.checked)],
            Field(
                ... if placeholder.default is None else placeholder.checked(placeholder.default),
                title=placeholder.title or name.replace("_", " ").capitalize(),
                description=placeholder.description,
                json_schema_extra=extra,
            ),
        )
    return create_model("CommandParameters", __base__=base, **fields)


def fill(program: Sequence[str], values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the argv with every placeholder replaced. Raise Mismatch when an item would mean something else to mpirun."""
    argv = tuple(item.format(**{name: _printed(values[name]) for name in names_in(item)}) for item in program)
    for template, item in zip(program, argv, strict=True):
        # mpirun takes a lone colon for the start of a second program, so a value could smuggle one in.
        if item == ":":
            raise Mismatch("program", "an argument that is only ':' would start another program")
        if names_in(template) and item.startswith("-") and not template.startswith("-"):
            raise Mismatch(names_in(template)[0], f"{item!r} would be read as an option")
    return argv


def fill_text(text: str, values: Mapping[str, Any]) -> str:
    """Return an input file with the placeholders that ``values`` has; all other braces stay as they are.

    Input files of programs are full of braces, so only names that mean a value are replaced. ``{{steps}}`` gives ``{steps}``, and
    ``${steps}`` is left alone: it is a variable of the program itself, as in LAMMPS.
    """

    def filled(match: re.Match[str]) -> str:
        name = match["name"] or match["literal"]
        if name not in values:
            return match[0]
        return f"{{{name}}}" if match["literal"] else _printed(values[name])

    return _IN_TEXT.sub(filled, text)


def names_in_text(text: str) -> set[str]:
    """Return the names in braces of an input file that ``fill_text`` would replace."""
    return {match["name"] for match in _IN_TEXT.finditer(text) if match["name"]}


def _printed(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)
