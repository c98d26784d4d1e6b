"""What a program needs from the network: elapsed time over delay, rate and loss, fitted to trials on certified links. Pure."""

from analysis.sensitivity.design import Known, Range, propose
from analysis.sensitivity.fit import Fit, fit
from analysis.sensitivity.held_out import Outcome, held_out
from analysis.sensitivity.links import Link, Run, Runs
from analysis.sensitivity.model import CARRIED, Draws, Quantity, quantity
from analysis.sensitivity.needs import (
    NO_BURSTS,
    TOLERATED,
    Bursts,
    Gain,
    Needs,
    Prediction,
    gain,
    needs,
    predict,
    relative_times,
    sent,
    within,
)
from analysis.sensitivity.scaling import Stop, stop

__all__ = [
    "CARRIED",
    "NO_BURSTS",
    "TOLERATED",
    "Bursts",
    "Draws",
    "Fit",
    "Gain",
    "Known",
    "Link",
    "Needs",
    "Outcome",
    "Prediction",
    "Quantity",
    "Range",
    "Run",
    "Runs",
    "Stop",
    "fit",
    "gain",
    "held_out",
    "needs",
    "predict",
    "propose",
    "quantity",
    "relative_times",
    "sent",
    "stop",
    "within",
]
