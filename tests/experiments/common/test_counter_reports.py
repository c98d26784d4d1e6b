"""Form of reports of counters from hosts and imports."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from experiments.common.counter_reports import checked_reports

WHOLE = {"value": 1.0, "peak": 2.0, "limit": 3.0}


def reports(**fields: Any) -> dict[str, Any]:
    row = {"name": "package-0", "total": "package_j", "device": "0", "seconds": 1.0, **fields}
    return {"n1": {"rapl": {"state": "ready", "title": "RAPL", "values": [row]}}}


@pytest.mark.parametrize("fields", [WHOLE, {"absent": "it was reset"}, {"absent": "it was reset", "seconds": 0.0}])
def test_checked_reports_keep_a_value_or_why_it_is_absent(fields: dict[str, Any]) -> None:
    assert checked_reports(reports(**fields)) == reports(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        *({"absent": "x", "value": 1.0}, {"absent": "x", **WHOLE}, {"absent": None, **WHOLE}, {"absent": "x", "value": None}),
        *({}, {"value": 1.0}, {**WHOLE, "seconds": 0.0}),
    ],
)  # fmt: skip
def test_checked_reports_refuse_a_row_that_is_neither_or_both(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        checked_reports(reports(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {**WHOLE, "value": 1e300},
        {**WHOLE, "peak": -1e300},
        {**WHOLE, "limit": 5e-324},
        {**WHOLE, "seconds": 5e-324},
        {**WHOLE, "wraps": -1},
    ],
)
def test_numbers_of_reports_stay_finite_when_they_are_added_and_divided(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        checked_reports(reports(**fields))
