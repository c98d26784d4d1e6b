"""Many waits of drawn causes: each cause gets nine tenths of its own."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from analysis.mpi.wait_sums import CAUSES
from tests.analysis.mpi.scenes import HEADER_BYTES, Scene

MSS = 1426
PACKET = MSS + HEADER_BYTES
ROOM = 40 * PACKET
ROUND_MS = 2_000
FRAME_MS = 1.2016
"""1 502 bytes at 10 Mbit/s."""


class Rounds:
    """Rank 1 asks for a message of rank 0 each round; its delay is known."""

    def __init__(self) -> None:
        self.scene, self.truth = Scene(window=ROOM), Counter()
        self.draw = random.Random(11)

    def add(self, at: float, cause: str) -> None:
        ms = self.draw.uniform(20, 180)
        self.scene.ack(at - 2, 1, self.scene.end_of(0), window=ROOM)
        self.scene.call(0, "Iprobe", at - 1.1, at - 1)
        ended, lacked = getattr(self, f"_{cause}")(at, ms)
        self.scene.call(1, "Recv", at, ended, peer=0, no_core=(0, lacked))

    def _late_sender(self, at: float, ms: float) -> tuple[float, float]:
        self.truth["late_sender"] += ms
        self.scene.call(0, "Send", at + ms, at + ms + 0.1, peer=1, size=MSS).data(at + ms + 0.1, 0, MSS)
        return at + ms + 0.1, self.draw.uniform(0, ms)

    def _no_core(self, at: float, ms: float) -> tuple[float, float]:
        """Of the sender before it sends, and then of the receiver to which all has come."""
        self.truth["no_core"] += 1.5 * ms
        self.scene.call(0, "Send", at + ms, at + ms + 0.1, peer=1, size=MSS, no_core=(ms, 0))
        self.scene.data(at + ms + 0.1, 0, MSS)
        return at + 1.5 * ms + 0.1, ms

    def _closed_window(self, at: float, ms: float) -> tuple[float, float]:
        self.truth["closed_window"] += ms
        self.scene.call(0, "Send", at - 0.5, at - 0.4, peer=1, size=44 * MSS)
        for number in range(40):
            self.scene.data(at + 0.001 * number, 0, MSS)
        self.scene.ack(at + 1, 1, self.scene.end_of(0), window=0)
        self.scene.ack(at + ms + 0.04, 1, self.scene.end_of(0), window=ROOM)
        for number in range(4):
            self.scene.data(at + ms + 0.1 + 0.001 * number, 0, MSS)
        return at + ms + 0.2, 0

    def _retransmission(self, at: float, ms: float) -> tuple[float, float]:
        self.truth["retransmission"] += ms
        self.scene.call(0, "Send", at - 0.5, at - 0.4, peer=1, size=3 * MSS).data(at + 0.1, 0, MSS)
        place = self.scene.lose(0, MSS)
        self.scene.data(at + 0.2, 0, MSS).data(at + 0.2 + ms, 0, MSS, place=place)
        return at + 0.3 + ms, 0

    def _line_rate(self, at: float, ms: float) -> tuple[float, float]:
        frames = round(min(ms, 40) / FRAME_MS)
        self.truth["line_rate"] += frames * FRAME_MS
        self.scene.call(0, "Send", at - 0.1, at, peer=1, size=frames * MSS)
        for number in range(frames):
            self.scene.data(at + FRAME_MS * (number + 1), 0, MSS)
        return at + FRAME_MS * frames + 0.1, 0


KINDS = ("late_sender", "no_core", "closed_window", "retransmission", "line_rate")


@pytest.fixture(scope="module")
def rounds() -> Rounds:
    rounds = Rounds()
    for number in range(60):
        rounds.add(10 + ROUND_MS * number, rounds.draw.choice(KINDS))
    return rounds


def test_each_cause_gets_nine_tenths_of_its_waits_and_little_of_others(rounds: Rounds) -> None:
    assert set(rounds.truth) == set(KINDS)
    (pair,) = rounds.scene.explained(link_rate_bps=1e7).pairs
    told_ms = {cause: 1e3 * seconds for cause, seconds in zip(CAUSES, pair.seconds, strict=True)}
    whole_ms = sum(told_ms.values())
    for cause in KINDS:
        assert told_ms[cause] > 0.9 * rounds.truth[cause], cause
        assert told_ms[cause] - rounds.truth[cause] < 0.02 * whole_ms, cause
    assert whole_ms - sum(rounds.truth.values()) < 0.05 * whole_ms
