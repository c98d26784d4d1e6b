"""The public API on which users of the library may rely."""

from __future__ import annotations

import subprocess
import sys

import analysis
from analysis import errors


def test_the_public_names_are_these() -> None:
    assert analysis.__all__ == [
        "CaptureAnalysis", "CaptureError", "DecoderError", "DropCounters", "FilterError", "Follower", "LiveCounters",
        "PacketTable", "ScopeAnalysis", "Trust", "UnreadableCapture", "UnsupportedCapture", "analyse", "follow",
        "read_capture",
    ]  # fmt: skip
    for name in analysis.__all__:
        assert getattr(analysis, name).__name__ == name


def test_all_errors_are_one_family() -> None:
    family = [errors.UnreadableCapture, errors.UnsupportedCapture, errors.DecoderError, errors.FilterError]
    assert all(issubclass(error, analysis.CaptureError) for error in family)


def test_it_loads_neither_django_nor_the_heavy_libraries_when_imported() -> None:
    heavy = "{'django', 'numba', 'scipy', 'polars', 'pyshark', 'rich', 'numpy'}"
    script = f"import sys, analysis; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=90)
    assert done.stdout.strip() == "[]"
