"""Measured and configured values of links of the test-bed, as a table.

    python -m benchmarks.link_certificate [--rounds 3] [--delays-ms 0 4 16] [--bandwidth 3e8] [--topology "two sites"] [--busy 0]

Every round builds each link anew and certifies it as a trial does, beside so many busy loops. "Degraded" are the links after which a
trial would be: the status is 1 when there is one.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.busy import busy_cores
from tests.workers.clusters.trials import PlainLink
from workers import launchers
from workers.launchers.testbed import TestbedSession
from workers.testbed.certificate import Certificate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delays-ms", type=float, nargs="+", default=[0.0, 4.0, 16.0])
    parser.add_argument("--bandwidth", type=float, default=3e8, help="bit/s")
    parser.add_argument("--topology", default="two sites", choices=["one site", "two sites", "star"])
    parser.add_argument("--busy", type=int, default=0, help="loops that use a core each")
    given = parser.parse_args()
    print("| asked | round | way | bandwidth, Mbit/s | burst, Mbit/s | delay, ms | TCP, Mbit/s | attempts | back end |")
    print("|---|---|---|---|---|---|---|---|---|")
    links = [(number, delay_ms / 1e3) for delay_ms in given.delays_ms for number in range(1, given.rounds + 1)]
    with busy_cores(given.busy):
        degraded = [
            not show(number, PlainLink(topology=given.topology, bandwidth_bps=given.bandwidth, delay_s=delay_s))
            for number, delay_s in links
        ]
    print(f"degraded: {sum(degraded)} of {len(degraded)}; load {os.getloadavg()[0]:.1f}")
    return 1 if any(degraded) else 0


def show(number: int, link: PlainLink) -> bool:
    """Print one link's two lines; return whether it is as asked."""
    with launchers.get("testbed").open(host_count=2, link=link) as session:
        assert isinstance(session, TestbedSession)
        certificate = session.certify()
        back_end = session.facts["back_end"]
    assert certificate is not None
    for source, target in (("n1", "n2"), ("n2", "n1")):
        achieved = values(certificate, source)
        print(
            f"| {1e3 * link.delay_s:g} ms | {number} | {source} to {target} | {achieved['bandwidth'] / 1e6:.1f} "
            f"| {achieved['rate of a short burst'] / 1e6:.0f} | {1e3 * achieved['delay']:.3f} "
            f"| {achieved['TCP rate'] / 1e6:.1f} | {certificate.attempts} | {back_end} |",
            flush=True,
        )
    return certificate.kept


def values(certificate: Certificate, source: str) -> dict[str, float]:
    """Return the achieved values of one direction, by quantity."""
    return {row.quantity: row.achieved or 0.0 for row in certificate.rows if row.source == source}


if __name__ == "__main__":
    sys.exit(main())
