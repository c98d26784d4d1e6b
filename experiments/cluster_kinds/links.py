"""What an experiment may ask of a network beside the rate and the MTU that every network has. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol


class AskedLink(Protocol):
    """What must be known of `experiments.spec.parameters.Link` to judge who can make it."""

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


_ASKED: Final[Mapping[str, Callable[[AskedLink], Any]]] = {
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
    """Return what the link asks of the network, in words.

    Bandwidth and MTU are not told: every link has them, and they may just say what the network is.
    """
    return [part for part, value_of in _ASKED.items() if value_of(link)]
