"""Packet analysis of MPI traffic: one capture in, every metric of the catalogue out. Needs no Django.

``analyse(path)`` gives a CaptureAnalysis, ``read_capture(path)`` the columnar PacketTable. Everything that can go
wrong with a capture is a CaptureError (tree in ``analysis.errors``). The public names are loaded when they are first used:
``import analysis`` costs next to nothing.
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
