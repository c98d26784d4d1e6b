"""The report of the 2011 shell script, digit by digit, for published figures.

The script used ``bc -l`` at scale 20, which truncates every division; its printed digits come back only in the same
order of operations. ``CAVEATS`` are the errors of these figures, printed with them.
"""

from __future__ import annotations

from decimal import ROUND_DOWN, Context, Decimal
from typing import Final

_BC = Context(prec=200, rounding=ROUND_DOWN)
_PLACES = Decimal(1).scaleb(-20)

CAVEATS: Final = (
    "Traffic intensity is 1/8 for every capture (bytes against bits), so it carries no information.",
    "The window is the unscaled header field averaged over both directions.",
    "Window / RTT is an upper bound, often hundreds of times the measured rate.",
    "N/T and T/N should be (N-1)/T and T/(N-1).",
)


def _divide(numerator: Decimal, denominator: Decimal) -> Decimal:
    return _BC.divide(numerator, denominator).quantize(_PLACES, rounding=ROUND_DOWN, context=_BC)


def _printed(value: Decimal) -> str:
    """Format like bc: no zero before the decimal point."""
    text = f"{value:f}"
    return text[1:] if text.startswith("0.") else text


def _six_places(duration_ns: int) -> Decimal:
    """Truncate to whole microseconds, as in the stamps of tcpdump."""
    return Decimal(duration_ns // 1000).scaleb(-6)


def legacy_report(
    packets: int, wire_bytes: int, duration_ns: int, window_sum: int, rtt_s: Decimal | str | None = None
) -> dict[str, str]:
    """Return the report, printed label -> printed digits.

    ``window_sum`` is the sum of the raw window fields of all TCP packets. ``rtt_s`` is the mean of the pings that the
    script sent; without it two figures are omitted. Raises ValueError for an empty capture or T = 0.
    """
    if packets < 1 or duration_ns < 1000:
        raise ValueError("the 2011 report needs at least two packets and a duration of a microsecond")
    n, b, t = Decimal(packets), Decimal(wire_bytes), _six_places(duration_ns)
    packets_per_second = _divide(n, t)
    mean_length = _divide(b, n)
    mean_window = _divide(Decimal(window_sum), n)
    rate = _divide(b * 8, t)
    report = {
        "Number of packets": str(packets),
        "Data exchanged": str(wire_bytes),
        "Time difference": _printed(t),
        "Packets per second": _printed(packets_per_second),
        "Average Inter-arrival": _printed(_divide(t, n)),
        "Average packet length": _printed(mean_length),
        "Average window size": _printed(mean_window),
    }
    if rtt_s is not None and Decimal(rtt_s) > 0:
        rtt = Decimal(rtt_s).quantize(_PLACES, rounding=ROUND_DOWN, context=_BC)
        report["Average Round Trip Time"] = _printed(rtt)
        report["Average Max Bandwidth [Throughput]"] = _printed(_divide(mean_window * 8, rtt))
    report["Average Transmission Rate"] = _printed(rate)
    product = _BC.multiply(mean_length, packets_per_second).quantize(_PLACES, rounding=ROUND_DOWN, context=_BC)
    report["Traffic Intensity"] = _printed(_divide(product, rate)) if rate else "0"
    return report
