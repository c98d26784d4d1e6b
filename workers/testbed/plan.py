"""Plan of the test-bed: hosts, topology, and properties of the wires. Pure data."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

Topology = Literal["one site", "two sites", "star"]
Emulator = Literal["none", "nftables", "netem", "relay"]

DEFAULT_MTU = 1500


@dataclass(frozen=True)
class Plan:
    """Host names in order and the link between them; None means unlimited, unchanged.

    `one site`: every host's sending is shaped and impaired. `star`: the rate of each host's port holds in both directions. `two
    sites`: the first half of the hosts and the others have a bridge each; the wire between the bridges is shaped and impaired
    in both directions. `rates_bps` are the hosts' own ports in order, the last one for all further hosts; empty means
    `bandwidth_bps`, with two sites no limit.
    """

    hosts: tuple[str, ...]
    mtu: int = DEFAULT_MTU
    bandwidth_bps: float | None = None
    delay_s: float = 0.0
    jitter_s: float = 0.0
    distribution: str = "uniform"
    loss: float = 0.0
    loss_burst: float = 1.0
    queue_bytes: int | None = None
    topology: Topology = "one site"
    rates_bps: tuple[float, ...] = ()
    congestion_control: str | None = None
    tcp_buffer_bytes: int | None = None
    emulator: Emulator = "none"

    def __post_init__(self) -> None:
        """Convert JSON lists to tuples."""
        object.__setattr__(self, "hosts", tuple(self.hosts))
        object.__setattr__(self, "rates_bps", tuple(self.rates_bps))

    def to_message(self) -> dict[str, Any]:
        """Return a message for the agent; `Plan(**message)` gives an equal plan."""
        return dataclasses.asdict(self)

    @property
    def addresses(self) -> dict[str, str]:
        """IPv4 addresses by host name."""
        return {host: address(number) for number, host in enumerate(self.hosts, start=1)}

    @property
    def impaired(self) -> bool:
        """Return whether the wire has more than a rate."""
        return bool(self.delay_s or self.jitter_s or self.loss)

    @property
    def relayed(self) -> bool:
        """Return whether the relay joins TAP devices, instead of veth pairs."""
        return self.impaired and self.emulator == "relay"

    def second_site(self, number: int) -> bool:
        """Return whether host `number` (from 1) is at the far side of the wide-area link."""
        return self.topology == "two sites" and number > (len(self.hosts) + 1) // 2

    def port_rate_bps(self, number: int) -> float | None:
        """Return the rate of host `number`'s own port (from 1)."""
        if self.rates_bps:
            return self.rates_bps[min(number, len(self.rates_bps)) - 1]
        return None if self.topology == "two sites" else self.bandwidth_bps

    def path_rate_bps(self, source: int, target: int) -> float | None:
        """Return the rate of the narrowest part between two hosts, in one direction."""
        rates = [self.port_rate_bps(source)]
        if self.topology == "star":
            rates.append(self.port_rate_bps(target))
        if self.second_site(source) != self.second_site(target):
            rates.append(self.bandwidth_bps)
        return min((rate for rate in rates if rate is not None), default=None)

    def path_impaired(self, source: int, target: int) -> bool:
        """Return whether frames between two hosts meet the delay and the loss."""
        return self.topology != "two sites" or self.second_site(source) != self.second_site(target)


def host_names(count: int) -> tuple[str, ...]:
    """Return n1 ... nN."""
    return tuple(f"n{number}" for number in range(1, count + 1))


def address(number: int) -> str:
    """Return the address of host nK; experiments.cluster_kinds.testbed limits K."""
    return f"10.77.0.{number}"
