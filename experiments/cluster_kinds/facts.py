"""Stated facts of a cluster: clock, cores, operations per cycle, price, watts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from analysis.conclusions.observations.economics import ClusterFacts
from experiments.common.quantities import BANDWIDTH, CLOCK, POWER, Dimension
from experiments.specification.parameters import refusal

_DIMENSIONS: Final = {"clock_hz": CLOCK, "watts": POWER, "idle_watts_per_host": POWER, "link_bandwidth_bps": BANDWIDTH}
_SAME_NAMES: Final = ("clock_hz", "price", "watts", "price_per_host_hour", "years_of_use", "price_per_kwh")


Positive = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)]


def _with_unit(dimension: Dimension) -> BeforeValidator:
    """Read text with a unit. A bare number is refused: 2 for 2 GHz would be 2 Hz."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        quantity = dimension.parse(value)
        if not value.strip()[-1].isalpha():
            raise ValueError(f"{value.strip()} has no unit; write {', '.join(dimension.display_units)} after it")
        return quantity

    return BeforeValidator(read)


Clock = Annotated[Positive, _with_unit(CLOCK)]
Power = Annotated[Positive, _with_unit(POWER)]
Bandwidth = Annotated[Positive, _with_unit(BANDWIDTH)]


class StatedFacts(BaseModel):
    """Facts that can be stated; amounts are in ``currency``, nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    hosts: int | None = Field(None, ge=1, le=1_000_000, title="Hosts")
    """Hosts of the whole cluster; 1 for the virtual test-bed."""
    cores_per_host: int | None = Field(None, ge=1, le=100_000, title="Cores per host")
    """Physical cores."""
    clock_hz: Clock | None = Field(None, title="Clock")
    """With its unit: 1.756 GHz."""
    operations_per_cycle: Positive | None = Field(None, title="Operations per cycle")
    """Floating-point operations of one core in one clock cycle: 2 in 2006, 16 with AVX2 and FMA."""
    currency: str | None = Field(None, title="Currency")
    """A sign or a short word: $, EUR."""
    price: Positive | None = Field(None, title="Price")
    """Price of the whole cluster."""
    watts: Power | None = Field(None, title="Power")
    """Of the whole cluster under load: 900 W."""
    idle_watts_per_host: Power | None = Field(None, title="Idle power")
    """Of a host without a trial: 40 W."""
    years_of_use: Positive | None = Field(None, title="Years of use")
    """The price is spread evenly over them."""
    price_per_host_hour: Positive | None = Field(None, title="Price of a host-hour")
    """Rent; it takes precedence over the price."""
    price_per_kwh: Positive | None = Field(None, title="Price of a kWh")
    """Price of electrical energy."""
    link_bandwidth_bps: Bandwidth | None = Field(None, title="Bandwidth")
    """Bandwidth of a host's link, with its unit: 10 Gbit/s."""
    mtu: int | None = Field(None, ge=68, le=65_536, title="MTU")
    """Largest packet of the hosts, in bytes."""
    offloads: str | None = Field(None, max_length=80, title="Offloads")
    """Joining of packets on the hosts' cards: tso, gso, gro, lro or off."""

    @field_validator("offloads")
    @classmethod
    def _names_offloads(cls, offloads: str | None) -> str | None:
        names = re.split(r"[\s,]+", offloads) if offloads else []
        if names != ["off"] and not {*names} <= {"tso", "gso", "gro", "lro"}:
            raise ValueError("must be off, or some of tso, gso, gro and lro, such as tso, gro")
        return ", ".join(names) or None

    @field_validator("currency")
    @classmethod
    def _is_short(cls, currency: str | None) -> str | None:
        if currency and not (len(currency) <= 8 and currency.isprintable() and " " not in currency):
            raise ValueError("must be a sign or one short word, such as $ or EUR")
        return currency

    @field_validator("price", "price_per_host_hour", "price_per_kwh")
    @classmethod
    def _has_currency(cls, price: float | None, info: ValidationInfo) -> float | None:
        if price and not info.data.get("currency", True):
            raise ValueError("needs a currency: state it too, such as $ or EUR")
        return price


def fields() -> Mapping[str, FieldInfo]:
    """Return the facts by name, in the order of the form."""
    return StatedFacts.model_fields


def parse_facts(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the facts of a form in base units. Raise InvalidSpec."""
    facts = {name: text.strip() for name, text in texts.items() if text.strip()}
    try:
        return StatedFacts.model_validate(facts).model_dump(exclude_none=True)
    except ValidationError as error:
        raise refusal(error) from None


def written(name: str, value: Any) -> str:
    """Return a stored fact as users write it: ``1.756 GHz``, ``8``."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        dimension = _DIMENSIONS.get(name)
        return dimension.format(value) if dimension else f"{value:.15g}"
    return str(value)


def facts_of(stated: Mapping[str, Any]) -> ClusterFacts:
    """Return stored facts as typed ones; all but positive numbers are unknown."""

    def number(*names: str) -> float | None:
        for name in names:
            value = stated.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
                return float(value)
        return None

    hosts, cores = number("hosts", "nodes"), number("cores_per_host", "cores_per_node")
    return ClusterFacts(
        hosts=None if hosts is None else int(hosts),
        cores_per_host=1 if cores is None else int(cores),
        flops_per_cycle=number("operations_per_cycle", "flops_per_cycle"),
        **{name: number(name) for name in _SAME_NAMES},
    )
