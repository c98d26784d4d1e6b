"""Judge the answer of an experiment against what its program measured of itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, Literal

from benchmarks.known_programs.kinds import (
    BLOCKED,
    COMMUNICATION,
    COMPUTING,
    DESCHEDULED,
    FIGURES,
    IMBALANCE,
    LAUNCH,
    Kind,
)

Verdict = Literal["right", "silent", "other", "OPPOSITE"]
Parts = Mapping[str, float]

NO_PART: Final = 0.1
"""A part below this share of the change did not cause it: an answer that names it says the opposite."""
NO_EFFECT_S: Final = 0.006
"""If a program without an effect takes so much longer by its own clocks, other load or a shared core is the cause."""
SECONDS: Final = 0.05
"""Seconds inside MPI may differ by this share, or by as many seconds."""


@dataclass(frozen=True)
class Judgement:
    """An answer beside the truth: the program's own seconds of each part."""

    verdict: Verdict
    part: str
    explains: float | None
    truth: Parts


def own_parts(trial: Mapping[str, Any]) -> Parts:
    """Return the parts of a trial's loop time by the program's own clocks, s."""
    own = {name: trial["metrics"][f"command.{name}"] for name in FIGURES}
    return {
        COMPUTING: own["computing_s"],
        IMBALANCE: own["busiest_computing_s"] - own["computing_s"],
        DESCHEDULED: own["busiest_run_delay_s"],
        BLOCKED: own["busiest_blocked_s"],
        COMMUNICATION: own["loop_s"] - own["busiest_outside_s"],
        LAUNCH: trial["metrics"]["elapsed_s"] - own["loop_s"],
    }


def measured(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [t for t in result["trials"] if t["state"] == "finished" and t["kind"] == "measured" and not t["apart"]]


def truth_of(kind: Kind, trials: Sequence[Mapping[str, Any]]) -> Parts:
    """Return seconds of parts that explain the answer, against best or largest."""
    sizes: dict[int, list[Parts]] = defaultdict(list)
    times: dict[int, list[float]] = defaultdict(list)
    for trial in trials:
        sizes[trial["ranks"]].append(own_parts(trial))
        times[trial["ranks"]].append(trial["metrics"][kind.deciding])
    typical = {ranks: _medians(parts) for ranks, parts in sizes.items()}
    last = typical[max(typical)]
    if kind.form == "gain":
        return {name: seconds for name, seconds in last.items() if name not in (COMPUTING, LAUNCH)}
    best = typical[min(times, key=lambda ranks: median(times[ranks]))]
    seen = last.keys() if kind.deciding == "elapsed_s" else last.keys() - {LAUNCH}
    return {name: last[name] - best[name] for name in last if name in seen}


def _medians(trials: Sequence[Parts]) -> Parts:
    return {name: median(parts[name] for parts in trials) for name in trials[0]}


def judge(kind: Kind, answer: Mapping[str, Any], truth: Parts) -> Judgement:
    """Judge the first cause of an answer: right, silent, other or OPPOSITE."""
    part, explains = next(((c["part"], c["explains"]) for c in answer["causes"]), ("", None))
    verdict: Verdict = "other"
    if kind.form == "none" and sum(truth.values()) < NO_EFFECT_S:
        is_equal = any(figure["name"] == "largest difference" for figure in answer["figures"])
        verdict = "OPPOSITE" if answer["causes"] else "right" if is_equal else "silent"
    elif part not in truth:
        verdict = "silent"
    elif part in true_causes(kind, truth):
        verdict = "right"
    elif truth[part] < NO_PART * sum(truth.values()):
        verdict = "OPPOSITE"
    return Judgement(verdict, part, explains, truth)


def true_causes(kind: Kind, truth: Parts) -> frozenset[str]:
    """Return the causes by construction, or the largest change under other load."""
    largest = max(truth, key=lambda name: truth[name])
    return kind.causes if largest in kind.causes else frozenset({largest})


def contradictions(trials: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the numbers of the product that the program's own numbers contradict."""
    for trial in trials:
        metrics, ranks = trial["metrics"], trial["ranks"]
        if (counted := metrics.get("mpi_messages")) is not None and counted != metrics["command.messages"]:
            yield f"trial {trial['id']}: {counted:g} messages, by the program {metrics['command.messages']:g}"
        shares = [metrics.get(f"mpi_{name}_share") for name in ("on_cpu", "blocked")]
        if None not in shares and trial["trust"] == "good":
            inside = sum(shares) * metrics["mpi_window_s"]
            own = metrics["command.mpi_s"] + metrics["command.meeting_s"]
            if abs(inside - own) > max(SECONDS * own, 0.4 * SECONDS):
                yield f"trial {trial['id']}: {inside:.3f} s in MPI per rank of {ranks}, by the program {own:.3f} s"
