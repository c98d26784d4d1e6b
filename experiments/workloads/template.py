"""Templates of a command: typed placeholders in argv items and input files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from string import Formatter
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from experiments.common.quantities import SIZE
from experiments.workloads.base import Mismatch, Parameters
from experiments.workloads.fields import parameter
from experiments.workloads.patterns import compiled

RANKS: Final = "ranks"
"""The one placeholder that needs no definition: the number of ranks."""
PLAIN_TEXT: Final = r"[A-Za-z0-9_][A-Za-z0-9_.,+=@%-]*"
"""Default pattern of a text: no leading dash, no slash, nothing that a program might expand."""
_NAME: Final = "[a-z][a-z0-9_]{0,39}"
PLACEHOLDER_NAME: Final = f"^{_NAME}$"
_IN_TEXT: Final = re.compile(rf"\{{\{{(?P<literal>{_NAME})\}}\}}|(?<!\$)\{{(?P<name>{_NAME})\}}")


def _refuse_bool(value: Any) -> Any:
    """Return the value. Raise ValueError for booleans."""
    if any(isinstance(item, bool) for item in (value if isinstance(value, list) else [value])):
        raise ValueError("true and false are neither numbers nor texts: write 'true' with quotes for the text")
    return value


NoBool: Final = BeforeValidator(_refuse_bool)


class Placeholder(BaseModel):
    """A typed parameter of a command, which can be swept like any other."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    type: Literal["integer", "number", "text"] = "integer"
    default: Annotated[int | float | str | None, NoBool] = None
    minimum: Annotated[float | None, NoBool] = None
    maximum: Annotated[float | None, NoBool] = None
    choices: Annotated[list[int | float | str] | None, NoBool] = Field(None, min_length=1, max_length=100)
    pattern: str | None = Field(None, min_length=1, max_length=200)
    """Regular expression that a text must match as a whole."""
    title: str = Field("", max_length=80)
    description: str = Field("", max_length=300)
    unit: str = Field("", max_length=20)

    @model_validator(mode="after")
    def _coherent(self) -> Placeholder:
        if self.type == "text" and (self.minimum is not None or self.maximum is not None):
            raise ValueError("a text has no minimum and no maximum")
        if self.type != "text" and self.pattern is not None:
            raise ValueError("only a text has a pattern")
        compiled(self.pattern or PLAIN_TEXT)
        if self.default is not None:
            self.checked(self.default)
        return self

    @property
    def typed_choices(self) -> list[Any] | None:
        """Return the choices that a value can be: within the limits, in its type."""
        typed = []
        for choice in self.choices or ():
            with suppress(ValueError):
                typed.append(self.checked(choice))
        return None if self.choices is None else typed

    def checked(self, value: Any) -> Any:
        """Return the value in its type. Raise ValueError with a sentence."""
        typed = self._text(value) if self.type == "text" else self._number(value)
        if self.choices is not None:
            if typed not in self.choices and str(typed) not in map(str, self.choices):
                raise ValueError(f"must be one of {', '.join(map(str, self.choices))}, not {value!r}")
        elif isinstance(typed, str) and not compiled(self.pattern or PLAIN_TEXT).fullmatch(typed):
            raise ValueError(f"'{value}' does not match {self.pattern or PLAIN_TEXT}")
        if self.minimum is not None and float(typed) < self.minimum:
            raise ValueError(f"must be at least {_plain(self.minimum)}, not {value!r}")
        if self.maximum is not None and float(typed) > self.maximum:
            raise ValueError(f"must be at most {_plain(self.maximum)}, not {value!r}")
        return typed

    def _text(self, value: Any) -> str:
        _refuse_bool(value)
        text = str(value) if isinstance(value, str | int | float) else "\n"
        if len(text) > 200 or not text.isprintable():
            raise ValueError(f"{value!r} is not a short printable text")
        return text

    def _number(self, value: Any) -> int | float:
        if isinstance(value, str) and self.unit in ("B", SIZE.base):
            value = SIZE.parse(value)
        try:
            number = float(value) if not isinstance(value, bool) else float("nan")
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if not abs(number) < 1e18:
            kind = "whole number" if self.type == "integer" else "number"
            raise ValueError(f"must be a {kind}, not {value!r}")
        if self.type == "integer" and not number.is_integer():
            raise ValueError(f"must be a whole number, not {value!r}")
        return int(number) if self.type == "integer" else number


def _plain(number: float) -> str:
    """Return a limit as users write it: 1000000, not 1e+06."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e18 else f"{number:g}"


def text_paths(definition: Any) -> Iterator[str]:
    """Yield the paths of texts among the placeholders of an unchecked definition."""
    placeholders = definition.get("placeholders") if isinstance(definition, Mapping) else None
    for name, placeholder in placeholders.items() if isinstance(placeholders, Mapping) else ():
        if isinstance(placeholder, Mapping) and placeholder.get("type") == "text":
            yield from (f"placeholders.{name}.default", f"placeholders.{name}.choices")


def with_placeholders(base: type[Parameters], placeholders: Mapping[str, Any]) -> type[Parameters]:
    """Return ``base`` with a typed and checked field for each placeholder."""
    fields: dict[str, Any] = {}
    for name, written in placeholders.items():
        placeholder = Placeholder.model_validate(written)
        kind = {"integer": int, "number": float, "text": str}[placeholder.type]
        default = ... if placeholder.default is None else placeholder.checked(placeholder.default)
        title = placeholder.title or name.replace("_", " ").capitalize()
        fields[name] = (
            Annotated[kind, BeforeValidator(placeholder.checked)],
            parameter(
                default, title, placeholder.description, unit=placeholder.unit, choices=placeholder.typed_choices
            ),
        )
    return create_model(base.__name__, __base__=base, __cls_kwargs__={"use_attribute_docstrings": False}, **fields)


def names_in(item: str) -> list[str]:
    """Return the placeholders of an argv item. Raise ValueError for odd braces."""
    try:
        parts = list(Formatter().parse(item))
    except ValueError as error:
        raise ValueError(f"{item!r}: {error}; write {{{{ and }}}} for braces") from None
    used = [(name, specification or conversion) for _, name, specification, conversion in parts if name is not None]
    if any(more or not re.fullmatch(_NAME, name) for name, more in used):
        raise ValueError(f"{item!r}: a placeholder is a plain name in braces, such as {{steps}}")
    return [name for name, _ in used]


def fill(program: Sequence[str], values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the argv with its placeholders replaced. Raise Mismatch for odd items."""
    argv = tuple(item.format(**{name: _printed(values[name]) for name in names_in(item)}) for item in program)
    for template, item in zip(program, argv, strict=True):
        # mpirun takes a lone colon for the start of a second program, so a value could smuggle one in.
        if item == ":":
            raise Mismatch("program", "an argument that is only ':' would start another program")
        if names_in(template) and item.startswith("-") and not template.startswith("-"):
            raise Mismatch(names_in(template)[0], f"{item!r} would be read as an option")
    return argv


def fill_text(text: str, values: Mapping[str, Any]) -> str:
    """Return an input file with the placeholders of ``values`` replaced.

    All other braces stay. ``{{steps}}`` gives ``{steps}``, and ``${steps}`` is left alone: it is a variable of the program, as in LAMMPS.
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
