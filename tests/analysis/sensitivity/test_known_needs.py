"""A ring of known messages is found by a study of ten links; the real one runs at night, in tests/script/test_quick_studies.py."""

from __future__ import annotations

import pytest

from analysis.sensitivity import Link, fit, propose, quantity
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
