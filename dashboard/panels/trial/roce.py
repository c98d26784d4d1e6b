"""RoCEv2 of a trial: how much of its traffic it is, and whether the network lost or slowed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis import numbers

MOST_QUEUE_PAIRS = 10


def roce_of(roce: Mapping[str, Any] | None, wire_bytes: float | None) -> dict[str, Any] | None:
    """What its panel shows; None where the capture holds none. ``wire_bytes``: of everything that was captured."""
    if not roce:
        return None
    rates = roce.get("rates") or {}
    return {
        "answer": _answer(roce, wire_bytes),
        "rows": [
            ("Mean rate", numbers.amount(rates.get("throughput_bps"), "bit/s")),
            ("Highest rate in 10 ms", numbers.amount(rates.get("peak_10ms_bps"), "bit/s")),
            *((name, numbers.grouped(count)) for name, count in roce["operations"].items()),
            ("Packets sent again", numbers.grouped(roce["retransmitted_packets"])),
            ("Packets marked by switches", numbers.grouped(roce["marked_packets"])),
            ("Congestion notifications", numbers.grouped(roce["congestion_notifications"])),
        ],
        "pairs": roce["queue_pairs"][:MOST_QUEUE_PAIRS],
        "pair_count": len(roce["queue_pairs"]),
    }


def _answer(roce: Mapping[str, Any], wire_bytes: float | None) -> str:
    """One sentence: how much it is, and what the network did to it."""
    share = f"{numbers.amount(roce['wire_bytes'] / wire_bytes, numbers.SHARE)} of all bytes" if wire_bytes else ""
    much = share or numbers.amount(roce["wire_bytes"], "B")
    again, packets = roce["retransmitted_packets"], roce["packets"]
    slowed = roce["marked_packets"] + roce["congestion_notifications"]
    lost = (
        f"{numbers.plural(again, 'packet')} of {numbers.grouped(packets)} "
        f"({numbers.amount(again / packets, numbers.SHARE)}) {'was' if again == 1 else 'were'} sent again"
    )
    if again and slowed:
        what = f"{lost}, and switches asked senders to slow down: the network was congested and lost packets"
    elif again:
        what = f"{lost} though no switch asked to slow down: packets were lost, or their acknowledgements late"
    elif slowed:
        what = "no packet was sent again, but switches asked senders to slow down: the network was congested"
    else:
        what = "no packet was sent again and no switch asked to slow down: nothing says that the network held it back"
    return f"RoCEv2 carries {much}; {what}."
