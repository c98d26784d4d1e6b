"""Result files of other tools as descriptions of what was measured elsewhere. Pure.

A reader is a module with ``recognises(data)`` and ``read(data)``: the first looks at the content alone, never at the file's name. What a
reader gives goes the way of a description that somebody wrote (``experiments.exchange.measured``), with the same checks.
"""

from __future__ import annotations

import json
from typing import Any, Final, Protocol

from experiments.errors import BadBundle
from experiments.exchange.importers import ramble, reframe, talp
from experiments.exchange.importers.report import ForeignReport

__all__ = ["ForeignReport", "read_report"]


class _Reader(Protocol):
    def recognises(self, data: dict[str, Any]) -> bool: ...

    def read(self, data: dict[str, Any]) -> ForeignReport: ...


_READERS: Final[tuple[_Reader, ...]] = (reframe, ramble, talp)


def read_report(text: str) -> ForeignReport:
    """Return what a result file says. Raise BadBundle where it is none that is known here, or one of a version that is not."""
    try:
        data = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise BadBundle(f"It is no JSON: line {error.lineno}, column {error.colno}: {error.msg}.") from None
    except (ValueError, RecursionError) as error:
        raise BadBundle(f"It is no JSON that can be read: {str(error)[:200]}.") from None
    reader = next((each for each in _READERS if isinstance(data, dict) and each.recognises(data)), None)
    if reader is None:
        raise BadBundle(
            "It is no result file that is known here: neither a report of ReFrame, nor results of Ramble or Benchpark, nor of TALP."
        )
    return reader.read(data)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")
