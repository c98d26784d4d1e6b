"""Errors of captures, one family below CaptureError."""

from __future__ import annotations


class CaptureError(Exception):
    """A capture could not be analysed; the message is one sentence for users."""


class UnreadableCapture(CaptureError):
    """The file is missing, empty or not a capture."""


class UnsupportedCapture(CaptureError):
    """The format, the link type or a feature of the capture is not supported."""


class DecoderError(CaptureError):
    """The second decoder (tshark) is missing, failed or exceeded its time limit."""


class FilterError(CaptureError):
    """tshark does not accept the display filter."""
