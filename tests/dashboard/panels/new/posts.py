"""The new-experiment form as a browser posts it."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

FORM = {
    "name": "Hosts and MTU",
    "workload": "water",
    "parameters.molecules": "216",
    "parameters.steps": "300",
    "parameters.temperature": "300.0",
    "parameters.ranks_per_host": "2",
    "sweep_name": ["hosts", "link.mtu"],
    "sweep_values": ["1..2", "1500, 9000"],
    "combine": "matrix",
    "cluster": "testbed",
    "link.bandwidth": "100 Mbit/s",
    "link.delay": "0 ms",
    "link.jitter": "0 ms",
    "link.loss": "0 %",
    "capture.enabled": "on",
    "capture.snap_length": "128",
    "capture.keep_shown": "1",
    "capture.keep": "on",
    "repetitions": "2",
    "warmups": "1",
    "order": "interleaved",
    "seed": "2007",
    "time_limit_s": "60 s",
    "retries": "1",
    "scaling": "strong",
}


def posted(**changes: Any) -> QueryDict:
    data = QueryDict(mutable=True)
    for name, value in (FORM | changes).items():
        data.setlist(name, value if isinstance(value, list) else [value])
    return data
