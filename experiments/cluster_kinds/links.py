"""Parts of a network that experiments request and kinds of cluster emulate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from experiments.specification.parameters import Link


class AskedLink(Protocol):
    """The part of the specification's Link that decides which kind can make it."""

    @property
    def bandwidth_bps(self) -> float | None: ...
    @property
    def mtu(self) -> int | None: ...
    @property
    def delay_s(self) -> float: ...
    @property
    def jitter_s(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def topology(self) -> str: ...
    @property
    def rates_bps(self) -> tuple[float, ...]: ...
    @property
    def queue_bytes(self) -> int | None: ...
    @property
    def congestion_control(self) -> str | None: ...
    @property
    def tcp_buffer_bytes(self) -> int | None: ...


_UNASKED_BPS: Final = Link.model_fields["bandwidth"].default
_UNASKED_MTU: Final = Link.model_fields["mtu"].default
_ASKED: Final[Mapping[str, Callable[[AskedLink], Any]]] = {
    "bandwidth": lambda link: link.bandwidth_bps not in (None, _UNASKED_BPS),
    "MTU": lambda link: link.mtu not in (None, _UNASKED_MTU),
    "delay": lambda link: link.delay_s,
    "jitter": lambda link: link.jitter_s,
    "loss": lambda link: link.loss,
    "topology": lambda link: link.topology != "one site",
    "rates": lambda link: link.rates_bps,
    "queue": lambda link: link.queue_bytes,
    "TCP congestion control": lambda link: link.congestion_control,
    "TCP buffer": lambda link: link.tcp_buffer_bytes,
}
EVERYTHING: Final = frozenset(_ASKED)
"""For `ClusterKind.emulates` of a kind that makes its network itself."""


def asked_parts(link: AskedLink) -> list[str]:
    """Return the requested parts of the network; default rate and MTU request nothing."""
    return [part for part, value_of in _ASKED.items() if value_of(link)]


_PARTS: Final[Mapping[str, str]] = {
    "distribution": "jitter",
    "loss_burst": "loss",
    "congestion_control": "TCP congestion control",
    "tcp_buffer": "TCP buffer",
    "mtu": "MTU",
    "emulator": "delay",
}
"""Parameters of the link whose part of the network is called differently."""


def written_parts(link: Link) -> dict[str, str]:
    """Return the parts of the network that written parameters request.

    A written rate requests that rate, even the default; delay, loss and jitter of 0 request nothing.
    """
    written = {name: getattr(link, name) for name in link.model_fields_set}
    asks = {"bandwidth", "mtu"}
    return {
        name: part_of(name)
        for name, value in written.items()
        if value is not None and (name in asks or value != Link.model_fields[name].default)
    }


def part_of(parameter: str) -> str:
    """Return the part of the network that a parameter of the link belongs to."""
    return _PARTS.get(parameter, parameter)
