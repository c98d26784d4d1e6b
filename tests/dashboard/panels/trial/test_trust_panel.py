"""Trust on the trial page, item for item."""

from __future__ import annotations

from typing import Any

from analysis.catalogue import METRICS
from dashboard.panels.trial.trust_panel import TrustRow, trust_rows
from experiments.models import Trial


def judged(**fields: Any) -> Trial:
    return Trial(**{"trust": "good", "not_available": {}, **fields})


def test_it_lists_every_number_of_the_catalogues_section_in_its_order() -> None:
    rows = [row.label for row in trust_rows(judged(), {}, {}, None)]
    assert rows == [m.label for m in METRICS.values() if m.section == "trust" and m.shape == "number"]


def test_it_shows_values_and_reasons_of_missing_ones() -> None:
    trial = judged(not_available={"tail_lost": "the capture tool's own report was not given"})
    measured = {"captured": 421_866.0, "super_segment_share": 0.0125, "unread_bytes": 17.0}
    rows = {row.label: row for row in trust_rows(trial, measured, {"dropped_by_kernel": 0.0}, None)}
    assert rows["Captured packets"].value == "421\u202f866"
    assert rows["Dropped packets"].value == "0"
    assert rows["Coalesced segments, share"].value == "1.25\u202f%"
    assert rows["Unread bytes"].value == "17\u202fB"
    assert rows["Tail lost"].missing == "the capture tool's own report was not given"
    assert rows["ACKs for unseen data"].missing == "not measured"
    assert rows["Capture overhead"].missing.startswith("no control run: choose Control runs without capture")


def test_it_shows_the_observer_effect_if_a_control_ran() -> None:
    rows = trust_rows(judged(), {}, {}, {"difference": "+2.1 %"})
    assert rows[-1] == TrustRow("observer_effect", "Capture overhead", "+2.1 %")
