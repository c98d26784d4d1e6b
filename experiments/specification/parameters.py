"""Parameters of cluster, link and workload: types, units and limits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from analysis.numbers import binary, grouped
from experiments import workloads
from experiments.common import budget
from experiments.common.quantities import BANDWIDTH, BYTE_RATE, CLOCK, DURATION, FRACTION, POWER, SIZE, Dimension
from experiments.errors import FieldError, InvalidSpec, alternatives
from experiments.specification import placement, transport

MAX_HOSTS: Final = 200_000
MAX_RANKS: Final = 65_536
MOST_ERRORS: Final = 100
"""Reported at once: in YAML each of them looks for its line."""


def refuse_bool(value: Any) -> Any:
    """Return ``value``. Raise ValueError for booleans, which Python counts as numbers."""
    if isinstance(value, bool):
        raise ValueError(f"must be a number, not {str(value).lower()}")
    return value


def _bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return refuse_bool(value)
    size = SIZE.parse(value)
    return int(size) if size.is_integer() else size


def _text(dimension: Dimension) -> Any:
    return Annotated[str, Field(pattern=dimension.pattern, max_length=60)]


def _quantity(dimension: Dimension) -> BeforeValidator:
    """Read a number in the base unit, or text with a unit; JSON schemas show both."""

    def convert(value: Any) -> Any:
        return dimension.parse(value) if isinstance(value, str | int | float) else value

    return BeforeValidator(convert, json_schema_input_type=float | _text(dimension))


Bandwidth = Annotated[float, _quantity(BANDWIDTH), Field(gt=0, le=1e12)]
Delay = Annotated[float, _quantity(DURATION), Field(ge=0, le=10)]
Duration = Annotated[float, _quantity(DURATION)]
Loss = Annotated[float, _quantity(FRACTION), Field(ge=0, lt=1)]
Bytes = Annotated[int, BeforeValidator(_bytes, json_schema_input_type=int | _text(SIZE))]
Count = Annotated[int, BeforeValidator(refuse_bool)]
"""A whole number. pydantic alone would read ``repetitions: yes`` as 1."""


class Part(BaseModel):
    """Base of all parts of a specification: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def _rates(value: Any) -> Any:
    """Return ``1 Gbit/s; 100 Mbit/s`` from a list or a text. Raise ValueError."""
    if value is None or value == "":
        return ""
    items = value if isinstance(value, list | tuple) else value.split(";") if isinstance(value, str) else [value]
    if not all(isinstance(item, str | int | float) for item in items):
        raise ValueError("must be bandwidths, as in 1 Gbit/s; 100 Mbit/s")
    rates = [BANDWIDTH.parse(item) for item in items if not isinstance(item, str) or item.strip()]
    for rate in rates:
        if not 0 < rate <= 1e12:
            raise ValueError(f"{BANDWIDTH.format(rate)} is not a possible rate")
    return "; ".join(BANDWIDTH.format(rate) for rate in rates)


_RATE: Any = float | _text(BANDWIDTH)
Rates = Annotated[str, BeforeValidator(_rates, json_schema_input_type=str | list[_RATE])]
"""Rates of several ports, kept as text so that a sweep can hold several of them: semicolons, since commas part values."""


class Link(Part):
    """Requested network between hosts.

    ``bandwidth`` in bit/s, ``delay`` (one way) and ``jitter`` in s, ``loss`` as a share, ``mtu``, ``queue`` and ``tcp_buffer`` in bytes.
    """

    bandwidth: Bandwidth | None = 1e9
    """Rate of every host's port, of the wide-area link with two sites; empty: unlimited."""
    delay: Delay = 0.0
    """One-way delay."""
    jitter: Delay = 0.0
    """Variation of the delay: half of its range, or its standard deviation."""
    loss: Loss = 0.0
    """Share of packets lost at random."""
    mtu: Annotated[Bytes, Field(ge=576, le=9216)] = 1500
    """Largest IP datagram."""
    distribution: Literal["uniform", "normal"] = "uniform"
    """Distribution of the jitter."""
    loss_burst: Annotated[float, BeforeValidator(refuse_bool), Field(ge=1, le=1000)] = 1.0
    """Mean number of consecutive lost packets; 1: independent losses."""
    queue: Annotated[Bytes, Field(ge=2048, le=2**30)] | None = None
    """Longest queue in front of the limited rate; empty: so long that it never drops."""
    topology: Literal["one site", "two sites", "star"] = "one site"
    """All on one switch; two switches joined by one wide-area link; or a switch whose ports limit both directions."""
    rates: Rates = ""
    """Rates of the hosts' own ports in order, such as 1 Gbit/s; 100 Mbit/s; the last holds for all further hosts."""
    congestion_control: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,14}$")] | None = None
    """TCP congestion control of the hosts, such as cubic or reno; empty: as the machine has it."""
    tcp_buffer: Annotated[Bytes, Field(ge=4096, le=2**30)] | None = None
    """Largest TCP send and receive buffer of a socket; empty: as the machine has it."""
    emulator: Literal["auto", "netem", "nftables", "relay", "wirefilter"] = "auto"
    """Emulator of delay and loss; auto: netem if the kernel has it, else any that is available."""

    def ideal(self) -> Link:
        """Return the link of an ideal-network run; frames and TCP stay as they are."""
        free = {"bandwidth": None, "delay": 0.0, "jitter": 0.0, "loss": 0.0, "loss_burst": 1.0, "queue": None}
        return self.model_copy(update={**free, "topology": "one site", "rates": "", "emulator": "auto"})

    # That jitter needs at least as much delay is checked per configuration (design.problems), not here: either may be swept.

    @property
    def bandwidth_bps(self) -> float | None:
        return self.bandwidth

    @property
    def delay_s(self) -> float:
        return self.delay

    @property
    def jitter_s(self) -> float:
        return self.jitter

    @property
    def queue_bytes(self) -> int | None:
        return self.queue

    @property
    def tcp_buffer_bytes(self) -> int | None:
        return self.tcp_buffer

    @property
    def rates_bps(self) -> tuple[float, ...]:
        return tuple(BANDWIDTH.parse(rate) for rate in self.rates.split(";") if rate.strip())

    def describe(self, *, brief: bool = False) -> str:
        """Return the link in words; a brief description omits what is at its default."""
        jitter = f"{DURATION.format(self.jitter)} {self.distribution} jitter" if self.jitter else ""
        bursts = f" in bursts of {self.loss_burst:g}" if self.loss and self.loss_burst > 1 else ""
        parts = [
            self.topology if self.topology != "one site" else "",
            BANDWIDTH.format(self.bandwidth) if self.bandwidth else "unlimited rate",
            f"ports {self.rates}" if self.rates else "",
            f"{DURATION.format(self.delay)} delay" if self.delay else "" if brief else "no added delay",
            jitter,
            f"{FRACTION.format(self.loss)} loss{bursts}" if self.loss else "" if brief else "no loss",
            "" if brief and self.mtu == Link.model_fields["mtu"].default else f"MTU {grouped(self.mtu)} B",
            f"queue {buffer_size(self.queue)}" if self.queue else "",
            f"TCP {self.congestion_control}" if self.congestion_control else "",
            f"TCP buffers {buffer_size(self.tcp_buffer)}" if self.tcp_buffer else "",
        ]
        return ", ".join(part for part in parts if part)


class Capture(Part):
    """Recording of the packets of a trial."""

    enabled: bool = True
    snap_length: Count = Field(128, ge=96, le=262_144)
    """Bytes kept of each packet; 128 hold all headers."""
    keep: bool = True
    """Keep the compressed capture file after analysis."""

    @model_validator(mode="before")
    @classmethod
    def _read_switch(cls, value: Any) -> Any:
        """Return fields from true and false, and from on and off with quotes."""
        words = {"on": True, "off": False}
        switch = words.get(value, value) if isinstance(value, str) else value
        return {"enabled": switch} if isinstance(switch, bool) else switch


RANKS: Final = "ranks"
"""Name in filters for hosts times ranks per host."""
CLUSTER_PARAMETERS: Final = {"hosts": (1, MAX_HOSTS), "ranks_per_host": (1, 1024)}
LAUNCH_PARAMETERS: Final = ("transport", "bind", "distribution")
"""Fields of a specification that can be swept too; a workload's own parameter of such a name takes precedence."""
LINK_PARAMETERS: Final = tuple(f"link.{name}" for name in Link.model_fields)
_LINK_DIMENSIONS: Final = {
    "link.bandwidth": BANDWIDTH,
    "link.delay": DURATION,
    "link.jitter": DURATION,
    "link.loss": FRACTION,
    "link.mtu": SIZE,
    "link.queue": SIZE,
    "link.tcp_buffer": SIZE,
}


_BASE_UNITS: Final = {
    "B": SIZE,
    "1": FRACTION,
    **{dimension.base: dimension for dimension in (BANDWIDTH, BYTE_RATE, DURATION, SIZE, CLOCK, POWER)},
}


def known_parameters(workload: str, constants: Mapping[str, Any] | None = None) -> set[str]:
    """Return the parameter names of a workload, of the cluster and of the link."""
    fields = workloads.get(workload, constants).parameters_type.model_fields
    return {*fields, *CLUSTER_PARAMETERS, *LAUNCH_PARAMETERS, *LINK_PARAMETERS}


def is_of_launch(workload: str, name: str, constants: Mapping[str, Any] | None = None) -> bool:
    """Return whether a parameter is one of the launch, and not the workload's own."""
    definition = workloads.find(workload, constants) if name in LAUNCH_PARAMETERS else None
    return name in LAUNCH_PARAMETERS and (definition is None or name not in definition.parameters_type.model_fields)


def dimension_of(workload: str, name: str, constants: Mapping[str, Any] | None = None) -> Dimension | None:
    """Return the kind of quantity of a known parameter; None for counts and words."""
    if name in LINK_PARAMETERS or name in CLUSTER_PARAMETERS or is_of_launch(workload, name, constants):
        return _LINK_DIMENSIONS.get(name)
    return dimension_of_unit(unit_of(workloads.get(workload, constants).parameters_type.model_fields[name]))


def unit_of(field: FieldInfo) -> str:
    """Return the unit of a workload's parameter; '' for counts and words."""
    extra = field.json_schema_extra
    return str(extra.get("unit", "")) if isinstance(extra, dict) else ""


def dimension_of_unit(unit: str) -> Dimension | None:
    """Return the kind of quantity with this base unit; None for others."""
    return _BASE_UNITS.get(unit)


def is_text(workload: str, name: str, constants: Mapping[str, Any] | None = None) -> bool:
    """Return whether the values of a parameter are words, such as ``007``."""
    if name in LINK_PARAMETERS:
        return _holds_words(Link.model_fields[name.removeprefix("link.")].annotation)
    if is_of_launch(workload, name, constants):
        return True
    definition = workloads.find(workload, constants)
    field = None if definition is None else definition.parameters_type.model_fields.get(name)
    return field is not None and _holds_words(field.annotation)


def _holds_words(annotation: Any) -> bool:
    """Return whether a type is text, a choice of words, or one of them or nothing."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _holds_words(arguments[0])
    if origin is Literal:
        return all(isinstance(word, str) for word in arguments)
    if origin in (Union, UnionType):
        return all(_holds_words(member) for member in arguments if member is not NoneType)
    return annotation is str


def canonical(workload: str, name: str, value: Any, constants: Mapping[str, Any] | None = None) -> Any:
    """Return ``value`` in the base unit and type of a parameter. Raise ValueError.

    ``constants`` are those of the specification: the workload ``command`` gets its further parameters from them. Counts as processor
    time: a few words name a hundred thousand values.
    """
    budget.check()
    if name in CLUSTER_PARAMETERS:
        low, high = CLUSTER_PARAMETERS[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{value!r} is not a whole number{_as_list(value)}")
        if value < low:
            raise ValueError(f"must be {low} or more, not {value}")
        if not low <= value <= high:
            raise ValueError(f"must be from {low} to {high}, not {value}")
        return value
    if name in LINK_PARAMETERS:
        field = name.removeprefix("link.")
        try:
            return getattr(Link.model_validate({field: value}), field)
        except ValidationError as error:
            raise ValueError(sentence(error.errors()[0], name)) from None
    if is_of_launch(workload, name, constants):
        return transport.as_transport(value) if name == "transport" else placement.as_choice(name, value)
    model = workloads.get(workload, constants).parameters_type
    if model.model_fields[name].annotation in (int, float):
        refuse_bool(value)
    try:
        return getattr(model.__pydantic_validator__.validate_assignment(model.model_construct(), name, value), name)
    except ValidationError as error:
        raise ValueError(sentence(error.errors()[0])) from None


def _as_list(value: Any) -> str:
    """Return the suggestion for numbers that are separated otherwise: "1-4", "4 8 1"."""
    if not isinstance(value, str):
        return ""
    if ends := re.fullmatch(r"\s*(\d+)\s*(?:-|\u2013|to|:)\s*(\d+)\s*", value):
        return f"; a range is {ends[1]}..{ends[2]}"
    numbers = re.split(r"[\s;/]+", value.strip())
    return f"; a list is {', '.join(numbers)}" if len(numbers) > 1 and all(map(str.isdecimal, numbers)) else ""


def display_value(name: str, value: Any) -> str:
    """Return a parameter's canonical value as users write it."""
    dimension = _LINK_DIMENSIONS.get(name)
    if dimension is None or value is None:
        return str(value)
    return buffer_size(value) if name in ("link.queue", "link.tcp_buffer") else dimension.format(value)


def buffer_size(size_bytes: int) -> str:
    """Return a size in the binary unit that it is a multiple of: 1 MiB, 1500 B."""
    count, unit = binary(size_bytes)
    return f"{count} {unit}"


_SENTENCES: Final = {
    "missing": "is missing",
    "extra_forbidden": "is not a known field",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "dict_type": "must be a mapping of names to values",
    "model_type": "must be a mapping of fields",
}


def sentence(error: Any, name: str = "") -> str:
    """Return pydantic's error in plain words; ``name`` is used if it has no place."""
    kind, context, value = error["type"], error.get("ctx", {}), error.get("input")
    if kind in _SENTENCES:
        text = _SENTENCES[kind]
        comma = "; write a point, not a comma" if re.fullmatch(r"\d+,\d+", str(value).strip()) else ""
        return text if kind in {"missing", "extra_forbidden"} else f"{text}, not {_quoted(value)}{comma}"
    if kind == "value_error":
        return str(context["error"])
    name = name or ".".join(map(str, error["loc"]))
    if kind == "string_too_short" and value == "":
        return f"is empty: enter a {name}" if name.isalpha() else "is empty"
    message = re.sub("^(Input|String|List|Tuple) should", "must", str(error["msg"]))
    limit = next((context[bound] for bound in ("gt", "ge", "lt", "le") if bound in context), None)
    if limit is not None and name in _LINK_DIMENSIONS:
        message = f"{message.rpartition(' ')[0]} {display_value(name, limit)}"
        if _LINK_DIMENSIONS[name] is FRACTION and str(value).strip().replace(".", "", 1).isdigit():
            meaning = FRACTION.format(float(value))
            return f"{message}: {value} without a unit means {meaning}. Enter {value} % if you mean that"
    if name == "link.congestion_control":
        message = "must be the name of a TCP congestion control such as cubic or reno"
    return f"{message}, not {_quoted(value)}" if isinstance(value, int | float | str) else message


def _quoted(value: Any) -> str:
    """Return what was written, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _written_path(path: Sequence[Any]) -> Sequence[Any]:
    """Return the path without the kind of repetitions, which pydantic adds."""
    return [*path[:1], *path[2:]] if path[:1] == ("repetitions",) else path


def refusal(error: ValidationError, *path: str) -> InvalidSpec:
    """Return pydantic's errors in plain words, each at its field below ``path``."""
    return InvalidSpec(
        FieldError(
            ".".join(map(str, (*path, *_written_path(problem["loc"])))), sentence(problem) + _similar(error, problem)
        )
        for problem in error.errors()[:MOST_ERRORS]
    )


def _similar(error: ValidationError, problem: Any) -> str:
    """Return the fields that an unknown one may mean."""
    *path, name = problem["loc"] or ("",)
    if problem["type"] != "extra_forbidden" or not isinstance(name, str) or len(name) > 64:
        return ""
    parts: list[type[Part]] = [part for part in Part.__subclasses__() if part.__name__ == error.title]
    for step in path:
        declared = [part.model_fields[step] for part in parts if step in part.model_fields]
        kinds = [kind for field in declared for kind in (field.annotation, *get_args(field.annotation))]
        parts = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Part)]
    return alternatives(name, [field for part in parts for field in part.model_fields])
