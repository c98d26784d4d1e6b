"""Importers of result files of other tools.

An importer is a module with ``recognises(data)`` and ``read(data)``: the first looks at the content alone, never at the file's name.
Its result is a description (``experiments.exchange.measured``), with the same checks.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from experiments.common import strict_json
from experiments.common.storable import distinct_fields
from experiments.errors import BadBundle, InvalidSpec
from experiments.exchange.importers import ramble, reframe, talp
from experiments.exchange.importers.report import ToolReport

__all__ = ["ForeignReport", "read_report"]


class _Reader(Protocol):
    def recognises(self, data: dict[str, Any]) -> bool: ...

    def read(self, data: dict[str, Any]) -> ToolReport: ...


_READERS: Final[tuple[_Reader, ...]] = (reframe, ramble, talp)


def read_report(text: str, most_values: int = strict_json.MOST_VALUES) -> ToolReport:
    """Return the runs of a result file. Raise BadBundle for unknown formats."""
    try:  # NaN is a float here: only the run that has it is excluded
        hooks = {"object_pairs_hook": distinct_fields, "parse_float": float, "parse_constant": float}
        data = strict_json.parse(text.removeprefix("\ufeff"), most_values=most_values, **hooks)
    except (InvalidSpec, ValueError, RecursionError) as error:
        raise BadBundle(f"It is no JSON that can be read: {str(error)[:200]}.") from None
    chosen = next((importer for importer in _READERS if isinstance(data, dict) and importer.recognises(data)), None)
    if chosen is None:
        raise BadBundle(
            "It is no result file that is known here: neither a report of ReFrame, nor results of Ramble or Benchpark, nor of TALP."
        )
    return chosen.read(data)
