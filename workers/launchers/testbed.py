"""The virtual test-bed: hosts n1 ... nN on one bridge of this machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from analysis.numbers import plural
from experiments.cluster_kinds.testbed import MOST_HOSTS, Testbed
from experiments.common.processors import usable_cores
from workers.capture.dumpcap import DEFAULT_SNAP_LENGTH
from workers.capture.ring import RingCapture
from workers.capture.slot_memory import SlotMemory
from workers.errors import ClusterUnavailable
from workers.hosts.processes import LocalAgent
from workers.launchers import mpi, mpi_choice, openmpi
from workers.launchers.base import Launcher, Link, MachineSession, Recording, Session, Tell, ignore_progress
from workers.launchers.job import Job, Launch
from workers.testbed import commands, emulation, fabric, kept_certificate
from workers.testbed.certificate import Certificate, certify
from workers.testbed.kept_certificate import StoredCertificate, nothing_stored
from workers.testbed.plan import DEFAULT_MTU, Plan, host_names
from workers.testbed.probe import emulators, made_relay, probe, unshare_argv

FAR_SITE = "site-2"
_MEMORY: Final = SlotMemory()
"""Of all fabrics: one records at a time."""


class TestbedSession(MachineSession):
    """Session of a fabric."""

    is_isolated = True
    first_host = "n1"
    interface = commands.HOST_INTERFACE
    needed = (fabric.REMOTE_SHELL, fabric.RSH_SOCKET)

    def __init__(
        self, launcher: Launcher, agent: LocalAgent, hosts: tuple[str, ...], facts: dict[str, Any], plan: Plan
    ) -> None:
        super().__init__(launcher, agent, hosts, facts)
        self.plan = plan
        self._certificate: Certificate | None = None
        self._memory = _MEMORY
        self._stack.callback(self._memory.close)

    @property
    def recorded_hosts(self) -> tuple[str | None, ...]:
        """The near bridge, and one for frames between several hosts of the far site."""
        return (None, FAR_SITE) if self._far_hosts > 1 else (None,)

    @property
    def addresses_by_name(self) -> Mapping[str, frozenset[str]]:
        return {host: frozenset([address]) for host, address in self.plan.addresses.items()}

    @property
    def blind_spot(self) -> str:
        if self._far_hosts < 2:
            return ""
        return "packets between hosts of the second site are in a capture of their own and not in these metrics"

    @property
    def _far_hosts(self) -> int:
        return sum(self.plan.second_site(number) for number in range(1, len(self.hosts) + 1))

    def capture(self, host: str | None = None, *, snap_length: int = DEFAULT_SNAP_LENGTH) -> RingCapture:
        bridge, must_hold = (commands.FAR_BRIDGE, commands.SITE_BYTES) if host == FAR_SITE else (commands.BRIDGE, ())
        return RingCapture.on_interface(self.agent, bridge, self._memory, snap_length=snap_length, must_hold=must_hold)

    def certify(self, stored: StoredCertificate = nothing_stored) -> Certificate | None:
        """Return the measured link, or that of an equal network on this machine.

        Measured once, since the fabric does not change.
        """
        if self._certificate is None and len(self.hosts) > 1:
            made_on = kept_certificate.made_on(self.plan, self.environment(), self.facts)
            busy, earlier = kept_certificate.busy_share(), stored(made_on)
            if earlier is not None and kept_certificate.still_holds(earlier, busy):
                self._certificate = Certificate.from_dict(earlier)
            elif (measured := certify(self.agent, self.plan)) is not None:
                now = datetime.now(UTC).isoformat(timespec="seconds")
                self._certificate = dataclasses.replace(measured, measured_at=now, made_on=made_on, busy_share=busy)
        return self._certificate

    def network_problems(self, *, thorough: bool = False) -> list[str]:
        """Return dead emulators; when thorough, also changed kernel settings."""
        answer, _ = self.agent.ask("network", settings=thorough)
        problems = [f"The network emulator {name} ended while the fabric was in use." for name in answer["dead"]]
        return problems + [f"The shaping of {location} is not as it was built." for location in answer["changed"]]


class TestbedLauncher(Launcher):
    """Launch command in n1's namespace, with a remote shell into the other hosts."""

    kind = Testbed()

    def probe(self) -> list[str]:
        return probe()

    def host_names(self, host_count: int) -> tuple[str, ...]:
        return host_names(host_count)

    @property
    def usual_launch(self) -> Launch:
        return mpi_choice.usual_here()

    def for_program(self, job: Job) -> Job:
        return mpi_choice.chosen_here(job)

    def argv(self, job: Job) -> list[str]:
        launch = job.launch or Launch()
        transport, placement = self.transport(job), self.placement(job)
        if launch.library != "openmpi":
            agent, interface = str(fabric.REMOTE_SHELL), commands.HOST_INTERFACE
            return mpi.hydra(
                job, mpi.ClusterProperties(agent, interface, launch, transport, placement, shared_cores=True)
            )
        version = job.open_mpi or openmpi.installed(launch.program)
        return [
            *(launch.program, "--allow-run-as-root"),
            *openmpi.placement(job, placement),
            *openmpi.binding(job, placement.bind, version, shared_cores=True),
            *openmpi.daemons(str(fabric.REMOTE_SHELL), version),
            *openmpi.transport(job, commands.HOST_INTERFACE, version, transport),
            *openmpi.exports(job, transport),
            *job.wrapped_program(),
        ]

    def recording(self, job: Job) -> Recording:
        return Recording(f"the bridge between the hosts ({commands.BRIDGE})")

    def open(self, *, host_count: int, link: Link, tell: Tell = ignore_progress) -> Session:
        problems = self.probe()
        if not 1 <= host_count <= MOST_HOSTS:
            problems.append(f"A test-bed has 1 to {MOST_HOSTS} hosts, not {host_count}.")
        if problems:
            raise ClusterUnavailable(" ".join(problems))
        plan = plan_of(host_count, link)
        relay = str(made_relay()) if plan.relayed else ""
        agent = LocalAgent(unshare_argv())
        try:
            answer, _ = agent.ask("build", plan=plan.to_message(), relay=relay)
        except OSError as error:
            agent.close()
            raise ClusterUnavailable(f"The virtual network cannot be built: {error.strerror}.") from error
        except BaseException:
            agent.close()
            raise
        return TestbedSession(self, agent, plan.hosts, facts(plan, answer["facts"]), plan)


def plan_of(host_count: int, link: Link) -> Plan:
    """Return the network of a link that works here. Raises ClusterUnavailable."""
    plan = Plan(
        hosts=host_names(host_count),
        mtu=link.mtu or DEFAULT_MTU,
        bandwidth_bps=link.bandwidth_bps,
        delay_s=link.delay_s,
        jitter_s=link.jitter_s,
        distribution=link.distribution,
        loss=link.loss,
        loss_burst=link.loss_burst,
        queue_bytes=link.queue_bytes,
        topology=link.topology,
        rates_bps=link.rates_bps,
        congestion_control=link.congestion_control,
        tcp_buffer_bytes=link.tcp_buffer_bytes,
    )
    emulator, reasons = emulation.choose(plan, link.emulator, emulators() if plan.impaired else {})
    if reasons:
        raise ClusterUnavailable(f"No emulator here can make this link. {reasons}")
    return dataclasses.replace(plan, emulator=emulator)


def facts(plan: Plan, built: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that a page shows beside elapsed times of a virtual cluster."""
    cores = usable_cores()
    count = len(plan.hosts)
    return {
        "hosts": list(plan.hosts),
        "cores": cores,
        "oversubscription": f"{plural(count, 'virtual host')} on {plural(cores, 'core')}",
        "back_end": back_end(plan),
        "interface": commands.HOST_INTERFACE,
        "capture_interface": commands.BRIDGE,
        "link": {"bandwidth_bps": plan.bandwidth_bps, "mtu": plan.mtu},
        "topology": plan.topology,
        **built,
    }


def back_end(plan: Plan) -> str:
    """Return the names of what makes the network, for looking up."""
    limited = any(plan.port_rate_bps(number) for number in range(1, len(plan.hosts) + 1)) or plan.bandwidth_bps
    parts = [
        "bridge + veth" if not plan.relayed or plan.topology == "two sites" else "bridge",
        "tbf" if limited else "",
    ]
    named = {"relay": "relay (TAP)", "nftables": "nftables numgen", "none": ""}
    return " + ".join(part for part in (*parts, named.get(plan.emulator, plan.emulator)) if part)
