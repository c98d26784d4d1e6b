"""Generator of docs/reference/metrics.md.

``python -m analysis.catalogue_page > docs/reference/metrics.md``
"""

from __future__ import annotations

from typing import Final

from analysis.catalogue import METRICS, SECTION_TITLES, Metric, Section

_HEAD: Final = """# Metric catalogue

Generated from `analysis/catalogue.py` and `analysis/catalogue_page.py` by
`python -m analysis.catalogue_page > docs/reference/metrics.md`; a test fails when they differ.

A metric that cannot be computed is absent, with a reason (`not_available`); it is never 0 and never guessed. Every metric
of the sections *Volume and rate*, *Inter-arrival* and *TCP* exists for all traffic and for MPI traffic. **Bold** labels are
the six headline metrics of the published tables. A `share` is stored as a ratio and shown in per cent. The source names the
tool or paper whose definition is met; *own definition* is one of Rankwire.
"""

_NOTES: Final[dict[Section, str]] = {
    "volume": """N packets of a capture have the time stamps t_1 ... t_N; T = t_N - t_1.

- **Time** is in integer nanoseconds. Packets keep the order of the file. A packet that is stamped earlier than the packet
  before it is counted (`time_reversals`), and the order is not changed.
- **Lengths** are those on the wire (`orig_len`), also if the recorder stored only the headers.
- **Payload** P is the IP total length minus the IP and TCP headers (IPv6: the payload length minus extension headers and
  TCP header), so padding of Ethernet frames does not count. An IP length of 0 marks a coalesced segment, which a network card
  splits later; its length is then `orig_len` minus the link-layer header.
- If the last record of a file is incomplete, all records before it are used (`truncated_tail`).
""",
    "interarrival": """The gaps d_i = t_(i+1) - t_i are computed for all packets, for each flow and for each direction of a flow.

- **Hurst exponent.** Bulk-synchronous MPI traffic is bursty and anti-persistent at once: simulated barriers have a squared
  coefficient of variation of 18, but an index of dispersion of 0 at their period and a Hurst exponent of 0.09. Therefore it
  is not estimated if a period is found.
- **Fits.** Tabulated p-values do not hold for distributions whose parameters were fitted to the same data. The distance of
  Kolmogorov and Smirnov is stated as the size of the misfit, and p-values come from a parametric bootstrap of a subsample.
""",
    "tcp": """A flow is one connection: addresses, ports and initial sequence number, both directions. A connection without traffic does not
end. A connection whose handshake was not captured is analysed too; its windows are not available, because the handshake holds
their scale. Windows in SYN segments are not scaled, and a shift above 14 counts as 14.

- **Sources differ.** Wireshark and tcptrace define retransmissions and their relatives differently; the source says which
  definition is met. On captures without loss, retransmissions, segments, bytes and connections equal those of tcptrace.
- **Round trips** follow Karn's rule: from the newest byte that was sent once only to the ACK that covers it, so an ACK of
  a part of a coalesced segment counts. An ACK that carries payload includes the computing of the peer and counts as response latency.
- **Halves of the round trip** apply to captures between the hosts, as on a bridge or a switch.
- **Aborted connections.** If two ranks of Open MPI connect to each other at the same time, one connection is given up after
  about eight packets with a single handshake of 24 bytes.
""",
    "matrices": """Rows send, columns receive. The rank matrix comes from the packets alone. On a new connection the TCP
transport (BTL) of Open MPI since version 3 sends 24 bytes in either direction, in the byte order of the host: `uint32` job,
`uint32` rank in `MPI_COMM_WORLD`, and 16 characters with `OPAL-TCP-BTL`. These bytes are within the first 90 of a packet, so
a snap length of 128 is enough. Ranks of MPI libraries that state none are those of hosts with one rank.

Ranks on one host may exchange messages through shared memory, which no capture contains. The launchers select
`--mca pml ob1 --mca btl tcp,self`, and the matrix states it.
""",
    "trust": """A trust of *degraded* or *unusable* excludes the traffic of a trial from statistics. Its times count,
unless other load slowed it and clean trials of its configuration count.

- **Drops** come from the report of the capture tool or from the statistics block of a pcapng file. A plain pcap file has none.
- **Coalesced segments** are frames that a network card splits or has joined (offloads). Packet counts, gaps and sizes are then
  not those of the wire: one capture had 26 times too few packets and 52 % small packets instead of 14 %.
- **Duplicates** come from recording several interfaces: the Linux device `any` recorded each packet three times, which looked
  like 226 retransmissions.
- **Conservation.** Each frame between virtual hosts crosses the bridge once and two interfaces of hosts, so the bridge has half
  the packets of all interfaces together; a test compares them.
""",
    "legacy": """Rankwire prints the figures of the shell script of 2011 digit by digit, so that published figures can be compared: decimal
numbers, each division truncated after 20 places, as `bc -l` does. N is the number of packets, B their bytes, T their duration.

| printed as | formula |
|---|---|
| Packets per second | N / T |
| Average Inter-arrival | T / N |
| Average packet length | B / N |
| Average window size | sum of the window fields / N |
| Average Round Trip Time | mean of the pings to one host |
| Average Max Bandwidth [Throughput] | average window size x 8 / round trip time |
| Average Transmission Rate | 8 B / T |
| Traffic Intensity | (B / N) x (N / T) / (8 B / T) |

Read them with care: traffic intensity is 1/8 for every capture, because bytes are divided by bits. The window is the
unscaled field, averaged over both directions. Window / round trip time is an upper bound, 303 times the measured rate in the sample
of the script. N packets have N - 1 gaps, so the rates should use N - 1.
""",
}


def page() -> str:
    """Return the whole page as Markdown."""
    blocks = [_HEAD]
    for section, title in SECTION_TITLES.items():
        rows = [_row(metric) for metric in METRICS.values() if metric.section == section]
        header = "| id | label | unit | better | definition | source |\n|---|---|---|---|---|---|"
        notes = f"{_NOTES[section]}\n" if section in _NOTES else ""
        blocks.append(f"## {title}\n\n{notes}{header}\n" + "\n".join(rows) + "\n")
    return "\n".join(blocks)


def _row(metric: Metric) -> str:
    label = f"**{metric.label}**" if metric.headline else metric.label
    better = "" if metric.direction == "neutral" else metric.direction
    cells = (f"`{metric.id}`", label, metric.unit, better, metric.definition, metric.source)
    return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"


if __name__ == "__main__":
    print(page(), end="")
