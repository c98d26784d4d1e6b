"""Emulation of delay, jitter and loss: back end and its commands. Pure.

Values mean the same everywhere. Jitter: with the uniform distribution the delay is within +- jitter, with the normal one jitter
is the standard deviation. Frames never overtake each other. Loss in bursts is the simple Gilbert model: `loss` of all frames,
`loss_burst` successive frames on average (E. N. Gilbert, BSTJ 39, 1960).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workers.testbed.plan import Emulator, Plan

RELAY = Path(__file__).with_name("relay.py")
# Frames on their way; far more than any rate times delay asked for here, so that the emulator itself never drops.
NETEM_FRAMES = 1_000_000
# netem keeps the order of frames only when it has a rate; this one adds less than a microsecond to a frame.
ORDERING_RATE = "100gbit"
LOSS_UNIT = 1_000_000


def choose(plan: Plan, emulator: str, problems: Mapping[str, str]) -> tuple[Emulator, str]:
    """Return the back end of a plan and "", or "none" and the reason.

    `emulator` is a name or "auto"; `problems`: the obstacle of each back end here, "" for none.
    """
    if not plan.impaired:
        return "none", ""
    order: tuple[Emulator, ...] = ("netem", "nftables", "relay") if emulator == "auto" else (emulator,)  # type: ignore[assignment]
    reasons = []
    for name in order:
        reason = problems.get(name, f"there is no emulator {name}.") or unfit(plan, name)
        if not reason:
            return name, ""
        reasons.append(reason)
    return "none", " ".join(reasons)


def unfit(plan: Plan, name: str) -> str:
    """Return why a back end cannot make exactly this link; else empty."""
    if name == "nftables" and (plan.delay_s or plan.jitter_s or plan.loss_burst > 1):
        return "nftables only loses packets at random: it cannot delay them, nor lose them in bursts."
    return ""


def netem(plan: Plan) -> str:
    """Return the words after `netem` of a tc command."""
    words = [f"limit {NETEM_FRAMES}"]
    if plan.delay_s or plan.jitter_s:
        words.append(f"delay {_us(plan.delay_s)}us")
    if plan.jitter_s:
        words.append(f"{_us(plan.jitter_s)}us")
        if plan.distribution != "uniform":  # uniform is what netem does without a table
            words.append(f"distribution {plan.distribution}")
        words.append(f"rate {ORDERING_RATE}")
    if plan.loss and plan.loss_burst > 1:
        enter, leave = gilbert(plan.loss, plan.loss_burst)
        words.append(f"loss gemodel {100 * enter:.7g}% {100 * leave:.7g}%")
    elif plan.loss:
        words.append(f"loss random {100 * plan.loss:.7g}%")
    return " ".join(words)


def gilbert(loss: float, burst: float) -> tuple[float, float]:
    """Return the probabilities per frame to begin and to end losing.

    The lost share is then `loss`, a run has `burst` frames on average.
    """
    leave = 1 / burst
    return leave * loss / (1 - loss), leave


def nft_loss(interfaces: list[str], loss: float) -> str:
    """Return an nft ruleset that drops frames as they arrive from a wire."""
    threshold = round(loss * LOSS_UNIT)
    chains = [
        f"  chain {interface} {{ type filter hook ingress device {interface} priority 0; "
        f"numgen random mod {LOSS_UNIT} < {threshold} drop; }}"
        for interface in interfaces
    ]
    return "\n".join(["table netdev loss {", *chains, "}", ""])


def relay_argv(library: str, wires: Sequence[tuple[str, str, dict[str, Any], dict[str, Any]]]) -> list[str]:
    """Return the command of one relay process for several wires, as of `impairment`."""
    return [sys.executable, "-I", "-S", str(RELAY), library, json.dumps(wires, sort_keys=True)]


def impairment(plan: Plan) -> dict[str, Any]:
    """Return the relay's treatment of an impaired direction, without its rate."""
    return {
        "delay_s": plan.delay_s,
        "jitter_s": plan.jitter_s,
        "distribution": plan.distribution,
        "loss": plan.loss,
        "loss_burst": plan.loss_burst,
    }


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.7g}"
