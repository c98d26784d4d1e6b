"""What can go wrong with a capture, as one family.

CaptureError                 anything below; its text is one sentence for a reader
├── UnreadableCapture        no such file, empty, or not a capture at all
├── UnsupportedCapture       a known format with a link type or feature that the chosen decoder does not know
├── DecoderError             the second decoder (tshark) is missing, failed or ran out of time
└── FilterError              tshark refused a display filter
"""

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
