"""A study of ten links finds the known messages of a ring."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from analysis.sensitivity import Bursts, Link, Quantity, Run, Runs, fit, needs, propose, quantity, sent
from analysis.sensitivity.needs import TOLERATED
from tests.analysis.sensitivity.programs import Program
from tests.known_needs import known_needs

RING = {"message_bytes": 16 * 1024, "steps": 1500}


def test_a_ring_of_known_messages_is_found_within_ten_per_cent() -> None:
    known = known_needs("ring", RING)
    program = Program(computing_s=0.1, messages=known.messages, bits=8 * known.frame_bytes)
    found = fit(program.runs(0.03, links=propose(Link(30e-6, 500e6)))).draws

    assert quantity(found.messages).value == pytest.approx(1500, rel=0.1)
    # 12 frames a step: 16 384 bytes, 32 of Open MPI, and 66 of every frame.
    assert quantity(found.bits / 8).value == pytest.approx(1500 * (16416 + 12 * 66), rel=0.1)


def test_a_message_above_the_eager_limit_takes_three_messages_one_way() -> None:
    assert known_needs("pingpong", {"message_bytes": 32 * 1024}).messages == 1
    assert known_needs("pingpong", {"message_bytes": 64 * 1024}).messages == 3
    assert known_needs("ring", {**RING, "message_bytes": 2**20}).messages == 4500


HERE = Link(10e-6, 500e6)
LINKS = propose(HERE)
OVERHEAD_S = 50e-6
"""An emulator adds this to each delay that it makes; a link without a delay has no emulator."""
PROGRAMS = (
    Program(computing_s=0.05, messages=1500, bits=206e6),
    Program(computing_s=0.8, messages=1500, bits=206e6),
    Program(computing_s=3.0, messages=4300, bits=100e6),
    Program(computing_s=3.0, messages=4300, bits=100e6, hidden_delay_s=0.1e-3),
    Program(computing_s=1.0, messages=500, bits=400e6),
    Program(computing_s=2.0, messages=10_000, bits=50e6),
)


@dataclass(frozen=True)
class KnownQuantity:
    """An estimate and the truth."""

    quantity: str
    estimate: Quantity
    truth: float

    @property
    def is_held(self) -> bool:
        ends = self.estimate.interval
        return (ends.low or 0.0) <= self.truth <= (ends.high or np.inf)

    @property
    def error(self) -> float:
        return abs(self.estimate.value / self.truth - 1)


def certified_study(program: Program, scatter: float, random: np.random.Generator) -> list[KnownQuantity]:
    """Return the estimates of two trials on each of ten links."""
    runs = []
    for asked in LINKS:
        made = replace(asked, delay_s=asked.delay_s + (OVERHEAD_S if asked.delay_s > HERE.delay_s else 0.0))
        certified = Link(
            max(0.0, made.delay_s + 3e-6 * random.standard_normal()),
            made.rate_bps * (1 + 2e-3 * random.standard_normal()),
        )
        for _ in range(2):
            runs.append(Run(certified, program.elapsed(made) * float(np.exp(scatter * random.standard_normal()))))
    fitted = fit(Runs.of(runs))
    bounds = needs(fitted, runs[0].link)
    most_delay_s = max(HERE.delay_s, program.hidden_delay_s) + TOLERATED * program.elapsed(HERE) / program.messages
    output = [
        KnownQuantity("messages", quantity(fitted.draws.messages), program.messages),
        KnownQuantity("bits", quantity(fitted.draws.bits), program.bits),
    ]
    return output + ([KnownQuantity("delay bound", bounds.most_delay, most_delay_s)] if bounds.most_delay else [])


@pytest.mark.parametrize("scatter", [0.01, 0.05])
def test_intervals_of_certified_links_hold_the_truth_in_nine_of_ten(scatter: float) -> None:
    random = np.random.default_rng(35)
    output = [each for _ in range(25) for program in PROGRAMS for each in certified_study(program, scatter, random)]
    for name in ("messages", "bits", "delay bound"):
        own = [each for each in output if each.quantity == name]
        assert np.mean([each.is_held for each in own]) >= 0.9, name


def test_at_one_per_cent_of_scatter_bounds_are_within_a_quarter_and_bytes_within_15_per_cent() -> None:
    random = np.random.default_rng(35)
    output = [each for _ in range(25) for program in PROGRAMS for each in certified_study(program, 0.01, random)]
    for name, most in (("messages", 0.1), ("bits", 0.15), ("delay bound", 0.25)):
        own = [each.error for each in output if each.quantity == name]
        assert np.mean([error <= most for error in own]) >= 0.95, name


FRAME_BYTES = 1514


@pytest.mark.parametrize(
    ("computing_s", "least", "most"),
    [
        (0.0, 0.0, 0.0),  # a stream: every frame waits for the rate
        (1.0, 0.0, 1.0),  # a pause before each message: up to a frame of each leaves ahead of the rate
    ],
)
def test_the_interval_of_bytes_holds_what_a_shapers_burst_may_hide(
    computing_s: float, least: float, most: float
) -> None:
    program = Program(computing_s=computing_s, messages=1000, bits=8 * 16e6, hidden_delay_s=1e-5)
    link = Link(0.0, 500e6)
    fitted = fit(program.runs(0.0, links=propose(link)))

    output = sent(fitted, link, Bursts(0.0, FRAME_BYTES))

    assert output.interval.low == pytest.approx(16e6 + least * 1000 * FRAME_BYTES, rel=0.01)
    assert output.interval.high == pytest.approx(16e6 + most * 1000 * FRAME_BYTES, rel=0.01)
    assert output.value == pytest.approx(16e6 + (least + most) / 2 * 1000 * FRAME_BYTES, rel=0.01)


TIMER_S = 50e-6


def on_shaped_link(payload_bytes: int, pause_s: float, link: Link) -> float:
    """Return the seconds between messages over a token bucket."""
    wire_bits = 8 * (payload_bytes + 32 + 66 * -(-(payload_bytes + 32) // 1448))
    idle_s = pause_s + 10e-6 + link.delay_s
    at_once_bits = min(8 * FRAME_BYTES + link.rate_bps * TIMER_S, idle_s * link.rate_bps)
    return idle_s + max(0.0, wire_bits - at_once_bits) / link.rate_bps


@pytest.mark.parametrize(
    ("payload_bytes", "pause_s"), [(16384, 0.0), (16384, 0.2e-3), (16384, 0.5e-3), (4096, 0.3e-3), (65000, 1e-3)]
)
def test_bytes_that_a_shaper_hides_are_in_the_interval(payload_bytes: int, pause_s: float) -> None:
    random = np.random.default_rng(35)
    steps = 1000
    known = known_needs("ring", {"message_bytes": payload_bytes, "steps": steps}).frame_bytes
    bursts = Bursts(
        *(FRAME_BYTES + rate * TIMER_S / 8 for rate in (HERE.rate_bps, min(link.rate_bps for link in LINKS)))
    )
    output = []
    for _ in range(10):
        runs = [
            Run(link, steps * on_shaped_link(payload_bytes, pause_s, link) * float(np.exp(0.01 * deviation)))
            for link in LINKS
            for deviation in random.standard_normal(2)
        ]
        output.append(KnownQuantity("bytes", sent(fit(Runs.of(runs)), HERE, bursts), known))
    assert sum(each.is_held for each in output) >= 9
    assert np.median([each.error for each in output]) <= 0.15
