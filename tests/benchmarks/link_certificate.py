"""What links of the virtual test-bed are measured to be beside what was asked of them: one command prints the table.

    python -m tests.benchmarks.link_certificate [--rounds 3] [--delays-ms 0 4 16] [--bandwidth 3e8]

Every round builds each link anew (two sites, one wide-area link between them) and certifies it as a trial does. The status is 1 when a
bandwidth is farther than 5 % from what was asked, or a delay farther than both 5 % and 0.3 ms.
"""

from __future__ import annotations

import argparse
import sys

from tests.workers.clusters.trials import PlainLink
from workers import launchers
from workers.launchers.testbed import TestbedSession
from workers.testbed.certificate import Certificate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delays-ms", type=float, nargs="+", default=[0.0, 4.0, 16.0])
    parser.add_argument("--bandwidth", type=float, default=3e8, help="bit/s")
    given = parser.parse_args()
    print("| asked | round | way | bandwidth, Mbit/s | delay, ms | TCP, Mbit/s | attempts | back end |")
    print("|---|---|---|---|---|---|---|---|")
    outside = 0
    for delay_ms in given.delays_ms:
        for number in range(1, given.rounds + 1):
            outside += show(number, delay_ms / 1e3, given.bandwidth)
    print(f"outside of the tolerance: {outside}")
    return 1 if outside else 0


def show(number: int, delay_s: float, bandwidth_bps: float) -> int:
    """Print one link's two lines; return how many values are outside of their tolerance."""
    link = PlainLink(topology="two sites", bandwidth_bps=bandwidth_bps, delay_s=delay_s)
    with launchers.get("testbed").open(host_count=2, link=link) as session:
        assert isinstance(session, TestbedSession)
        certificate = session.certify()
        back_end = session.facts["back_end"]
    assert certificate is not None
    for source, target in (("n1", "n2"), ("n2", "n1")):
        achieved = values(certificate, source)
        print(
            f"| {1e3 * delay_s:g} ms | {number} | {source} to {target} | {achieved['bandwidth'] / 1e6:.1f} "
            f"| {1e3 * achieved['delay']:.3f} | {achieved['TCP rate'] / 1e6:.1f} | {certificate.attempts} | {back_end} |",
            flush=True,
        )
    return sum(row.kept is False for row in certificate.rows if row.quantity in ("bandwidth", "delay"))


def values(certificate: Certificate, source: str) -> dict[str, float]:
    """What was achieved in one direction, by quantity."""
    return {row.quantity: row.achieved or 0.0 for row in certificate.rows if row.source == source}


if __name__ == "__main__":
    sys.exit(main())
