"""Packet analysis of MPI traffic: captures to metrics, without Django.

``analyse(path)`` returns a CaptureAnalysis, ``read_capture(path)`` the columnar PacketTable. All errors of captures are
CaptureErrors (``analysis.errors``). Public names are loaded on first use, so that ``import analysis`` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.capture.follow import Follower, LiveCounters, follow
    from analysis.capture.tables import read_capture
    from analysis.capture_analysis import CaptureAnalysis, analyse
    from analysis.errors import CaptureError, DecoderError, FilterError, UnreadableCapture, UnsupportedCapture
    from analysis.packets import PacketTable
    from analysis.traffic.scopes import ScopeAnalysis
    from analysis.traffic.trust import DropCounters, Trust

_NAMES = {
    "analysis.capture.follow": ("Follower", "LiveCounters", "follow"),
    "analysis.capture.tables": ("read_capture",),
    "analysis.capture_analysis": ("CaptureAnalysis", "analyse"),
    "analysis.errors": ("CaptureError", "DecoderError", "FilterError", "UnreadableCapture", "UnsupportedCapture"),
    "analysis.packets": ("PacketTable",),
    "analysis.traffic.scopes": ("ScopeAnalysis",),
    "analysis.traffic.trust": ("DropCounters", "Trust"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "CaptureAnalysis",
    "CaptureError",
    "DecoderError",
    "DropCounters",
    "FilterError",
    "Follower",
    "LiveCounters",
    "PacketTable",
    "ScopeAnalysis",
    "Trust",
    "UnreadableCapture",
    "UnsupportedCapture",
    "analyse",
    "follow",
    "read_capture",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'analysis' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
