"""Errors of captures, one family below CaptureError."""

from __future__ import annotations


class CaptureError(Exception):
    """A capture could not be analysed; the message is one sentence for a reader."""


class UnreadableCapture(CaptureError):
    """No such file, an empty one, or not a capture."""


class UnsupportedCapture(CaptureError):
    """A capture in a format, with a link type or with a feature that the chosen decoder does not know."""


class DecoderError(CaptureError):
    """The second decoder is missing, failed, or ran out of time."""


class FilterError(CaptureError):
    """A display filter that tshark does not accept."""
