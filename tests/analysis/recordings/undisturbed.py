"""Streams between two hosts whose recordings the machine did not spoil."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import analysis
from analysis.trust_level import TrustLevel
from tests.analysis.recordings.two_hosts import record_stream

ATTEMPTS: Final = 3


def analysed_stream(output: Path, *iperf_arguments: str, mtu: int = 1500, **options: Any) -> analysis.CaptureAnalysis:
    """Return the analysis of a stream; record it again if it is degraded.

    At most ``ATTEMPTS`` recordings are made. A busy core drops packets and the clock of a virtual machine is set now and
    then: such a recording is rightly degraded and shows nothing about the stream. A stream that is degraded for its own
    sake stays so: the last recording is returned as it is.
    """
    for _ in range(ATTEMPTS):
        output.unlink(missing_ok=True)
        recorded = analysis.analyse(record_stream(output, *iperf_arguments, **options), mtu=mtu)
        if recorded.trust.verdict != TrustLevel.DEGRADED:
            break
    return recorded
