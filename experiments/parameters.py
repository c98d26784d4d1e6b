"""Parameters of a configuration: those of the cluster, of the link and of the workload, with their types, units and limits. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from experiments import workloads
from experiments.quantities import BANDWIDTH, DURATION, FRACTION, SIZE, Dimension

MAX_HOSTS: Final = 4096
MAX_RANKS: Final = 65_536


def _quantity(dimension: Dimension) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        return None if value is None else dimension.parse(value) if isinstance(value, str | int | float) else value

    return convert


Bandwidth = Annotated[float, BeforeValidator(_quantity(BANDWIDTH)), Field(gt=0, le=1e12)]
Delay = Annotated[float, BeforeValidator(_quantity(DURATION)), Field(ge=0, le=10)]
Duration = Annotated[float, BeforeValidator(_quantity(DURATION))]
Loss = Annotated[float, BeforeValidator(_quantity(FRACTION)), Field(ge=0, lt=1)]
Bytes = Annotated[int, BeforeValidator(lambda v: int(SIZE.parse(v)) if isinstance(v, str) else v)]


class Part(BaseModel):
    """Base of every part of a specification: unknown fields are errors, values are final."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Link(Part):
    """What the network between hosts is asked to be.

    ``bandwidth`` in bit/s, ``delay`` (one way) and ``jitter`` in s, ``loss`` as a share, ``mtu`` in bytes.
    """

    bandwidth: Bandwidth | None = Field(1e9, description="Rate of every host's port; empty: unlimited.")
    delay: Delay = Field(0.0, description="One-way delay.")
    jitter: Delay = Field(0.0, description="Variation of the delay.")
    loss: Loss = Field(0.0, description="Share of packets lost at random.")
    mtu: Annotated[Bytes, Field(ge=576, le=9216)] = Field(1500, description="Largest IP datagram.")

    @model_validator(mode="after")
    def _jitter_needs_delay(self) -> Link:
        if self.jitter > self.delay:
            raise ValueError("jitter cannot be larger than the delay it varies")
        return self

    @property
    def bandwidth_bps(self) -> float | None:
        return self.bandwidth

    @property
    def delay_s(self) -> float:
        return self.delay

    @property
    def jitter_s(self) -> float:
        return self.jitter

    def describe(self) -> str:
        """Return the link in words: ``1 Gbit/s, no added delay, no loss, MTU 1500``."""
        delay = f"{DURATION.format(self.delay)} delay" if self.delay else "no added delay"
        jitter = [f"{DURATION.format(self.jitter)} jitter"] if self.jitter else []
        loss = f"{FRACTION.format(self.loss)} loss" if self.loss else "no loss"
        rate = BANDWIDTH.format(self.bandwidth) if self.bandwidth else "unlimited rate"
        return ", ".join([rate, delay, *jitter, loss, f"MTU {self.mtu}"])


class Capture(Part):
    """Whether and how the packets of a trial are recorded."""

    enabled: bool = True
    snap_length: int = Field(128, ge=96, le=262_144, description="Bytes kept of each packet; 128 hold all headers.")
    keep: bool = Field(True, description="Keep the compressed capture file after analysis.")


CLUSTER_PARAMETERS: Final = {"hosts": (1, MAX_HOSTS), "ranks_per_host": (1, 1024)}
LINK_PARAMETERS: Final = tuple(f"link.{name}" for name in Link.model_fields)
_LINK_DIMENSIONS: Final = {
    "link.bandwidth": BANDWIDTH,
    "link.delay": DURATION,
    "link.jitter": DURATION,
    "link.loss": FRACTION,
    "link.mtu": SIZE,
}


def known_parameters(workload: str) -> set[str]:
    """Return the parameter names of a workload, of the cluster and of the link."""
    own = workloads.get(workload).parameters_type.model_fields
    return {*own, *CLUSTER_PARAMETERS, *LINK_PARAMETERS}


def canonical(workload: str, name: str, value: Any) -> Any:
    """Return ``value`` in the base unit and type of parameter ``name``. Raise ValueError with a reader's sentence."""
    if name in CLUSTER_PARAMETERS:
        low, high = CLUSTER_PARAMETERS[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{value!r} is not a whole number")
        if not low <= value <= high:
            raise ValueError(f"must be from {low} to {high}, not {value}")
        return value
    if name in LINK_PARAMETERS:
        field = name.removeprefix("link.")
        try:
            # The delay is left open, so that a swept jitter is judged per configuration and not against the default.
            return getattr(
                Link.model_validate({"delay": 10, field: value} if field == "jitter" else {field: value}), field
            )
        except ValidationError as error:
            raise ValueError(sentence(error.errors()[0])) from None
    model = workloads.get(workload).parameters_type
    try:
        return getattr(model.__pydantic_validator__.validate_assignment(model.model_construct(), name, value), name)
    except ValidationError as error:
        raise ValueError(sentence(error.errors()[0])) from None


def shown(name: str, value: Any) -> str:
    """Return a parameter's canonical value as people write it."""
    dimension = _LINK_DIMENSIONS.get(name)
    return str(value) if dimension is None or value is None else dimension.format(value)


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
}


def sentence(error: Any) -> str:
    """Return pydantic's error in the words of this product, with the value that was given."""
    kind, context, given = error["type"], error.get("ctx", {}), error.get("input")
    if kind in _SENTENCES:
        text = _SENTENCES[kind]
        return text if kind in {"missing", "extra_forbidden"} else f"{text}, not {given!r}"
    if kind == "value_error":
        return str(context["error"])
    message = str(error["msg"]).replace("Input should", "must")
    return f"{message}, not {given!r}" if isinstance(given, int | float | str) else message
