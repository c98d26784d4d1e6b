"""Network needs of a program: elapsed time over delay, rate and loss. Pure."""

from analysis.sensitivity.design import Known, Range, propose
from analysis.sensitivity.fit import Fit, fit
from analysis.sensitivity.model import CARRIED, Link, Quantity, Run, Runs, quantity
from analysis.sensitivity.needs import (
    NO_BURSTS,
    BestSize,
    Bursts,
    Needs,
    Outcome,
    best_size_on,
    gain,
    held_out,
    needs,
    predict,
    relative_times,
    sent,
)

__all__ = [
    "CARRIED",
    "NO_BURSTS",
    "BestSize",
    "Bursts",
    "Fit",
    "Known",
    "Link",
    "Needs",
    "Outcome",
    "Quantity",
    "Range",
    "Run",
    "Runs",
    "best_size_on",
    "fit",
    "gain",
    "held_out",
    "needs",
    "predict",
    "propose",
    "quantity",
    "relative_times",
    "sent",
]
