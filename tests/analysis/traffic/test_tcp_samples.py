"""A full log of samples keeps an even share of them, in order."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.kernels import tcp_state as state
from analysis.traffic.tcp_samples import SampleLog

_EVENLY = 2654435769


@pytest.mark.parametrize("limit", [50, 1000, 5000, 40_000])
def test_the_samples_that_stay_are_those_of_the_lowest_draws_in_order(limit: int) -> None:
    store = np.zeros(1, state.STORE)[0]
    store["draw_limit"] = 1 << 32
    log = SampleLog(limit, store)
    draws = np.arange(70_000, dtype=np.int64) * _EVENLY % 2**32
    for ordinal, draw in enumerate(draws.tolist()):
        if store["samples_used"] + state.SAMPLES_PER_PACKET > store["sample_room"]:
            log.make_room(store)
        if draw < store["draw_limit"]:
            log._samples[int(store["samples_used"])] = (ordinal % 2, draw, ordinal)
            store["samples_used"] += 1
    values, begins = log.grouped(store, np.zeros(2, np.bool_))
    kept = np.flatnonzero(draws < store["draw_limit"])
    assert limit / 4 - 2 <= len(kept) <= limit
    assert values.tolist() == [*kept[kept % 2 == 0].tolist(), *kept[kept % 2 == 1].tolist()]
    assert begins.tolist() == [0, np.count_nonzero(kept % 2 == 0), len(kept)]
