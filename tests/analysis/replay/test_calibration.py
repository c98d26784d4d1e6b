"""Ping-pongs on certified links give back the values they were made with."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.replay.calibration import Calibration, Exchange, calibrate
from analysis.sensitivity import Link

TRUE = Calibration(overhead_s=25e-6, rate_share=0.93, large_times=2.2, scatter=0.0, exchanges=0)
LINKS = [Link(delay, rate) for delay in (30e-6, 0.5e-3) for rate in (200e6, 1e9)]


def exchanges(sizes, scatter=0.0):
    noise = np.random.default_rng(1)
    return [
        Exchange(link, size, TRUE.seconds(link, size) * float(np.exp(noise.normal(0, scatter))))
        for link in LINKS
        for size in sizes
    ]


def test_it_gives_back_what_exchanges_were_made_with():
    found = calibrate(exchanges((0, 4096, 65536, 1 << 20)))
    assert found is not None
    assert found.overhead_s == pytest.approx(TRUE.overhead_s, rel=0.01)
    assert found.rate_share == pytest.approx(TRUE.rate_share, rel=0.01)
    assert found.large_times == pytest.approx(TRUE.large_times, rel=0.01)
    assert found.corrected(Link(1e-4, 1e9)) == Link(pytest.approx(1.25e-4, rel=0.01), pytest.approx(0.93e9, rel=0.01))


def test_its_scatter_is_that_of_the_exchanges():
    found = calibrate(exchanges((0, 4096, 65536, 1 << 20) * 4, scatter=0.05))
    assert found is not None
    assert found.scatter == pytest.approx(0.05, rel=0.3)


def test_without_large_messages_they_cost_no_more():
    found = calibrate(exchanges((0, 4096, 65536)))
    assert found is not None
    assert found.large_times == 1.0


def test_too_few_exchanges_calibrate_nothing_and_lossy_links_do_not_count():
    assert calibrate(exchanges((4096,))[:2]) is None
    lossy = Link(1e-4, 1e9, 0.01)
    assert calibrate([Exchange(lossy, size, 1e-3) for size in (1, 2, 3, 4)]) is None
    assert calibrate([Exchange(LINKS[0], 8, 1e-3)] * 5) is None
