"""Stored host samples of a trial, reduced to a bounded number of steps.

`samples.json` holds the rows of `workers.hosts.sampling.shares`: flat objects in the order of time. Hours of 64 hosts
are 200 MB, so the file is read in pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np
import numpy.typing as npt

from experiments.common import budget
from experiments.errors import NotPlain, StoreUnavailable, Tampered
from experiments.files import is_left_out
from experiments.models import Artifact, Trial
from experiments.specification.parameters import MAX_HOSTS


class NoSamples(Exception):
    """Reason for missing samples, for the user."""


def samples_of(trial: Trial) -> HostSamples:
    """Return the samples of a trial's hosts. Raise NoSamples."""
    artifact = trial.artifacts.filter(kind=Artifact.Kind.SAMPLES).first()
    if artifact is None:
        raise NoSamples("This trial has no host samples.")
    if artifact.removed_at is not None:
        raise NoSamples(f"{artifact.name} was deleted from the store.")
    if is_left_out(trial.experiment.origin):
        raise NoSamples(f"{artifact.name} has values that no version of Rankwire writes.")
    try:
        with artifact.intact() as file:
            samples = read_samples(file)
    except (Tampered, NotPlain, StoreUnavailable) as error:
        raise NoSamples(str(error)) from None
    except OSError:
        raise NoSamples(f"{artifact.name} is missing on disk.") from None
    except ValueError as error:
        raise NoSamples(f"{artifact.name} cannot be read: {error}.") from None
    if not samples.hosts:
        raise NoSamples("Only one sample was taken, which gives no rates.")
    return samples


MOST_STEPS: Final = 240
MOST_HOSTS: Final = 64
_PIECE: Final = 1 << 20
_TAIL_BYTES: Final = 4096
_BETWEEN: Final = "[, \n"
QUANTITIES: Final = ("cpu_share", "cpu_system_share", "runnable", "memory_bytes", "tx_Bps", "rx_Bps", "drops_per_s")
"""Quantities: `cpu_share` is user and system of one core together."""
COUNTED: Final = (
    *("package_W", "dram_W", "gpu_W", "host_W", "frequency_Hz", "temperature_C", "gpu_share"),
    *("fabric_tx_Bps", "fabric_rx_Bps", "ethernet_tx_Bps", "ethernet_rx_Bps", "nfs_rx_Bps", "nfs_tx_Bps"),
    "fabric_wait_share",
)
"""Quantities of the counters of hosts that have them."""
_ALL: Final = QUANTITIES + COUNTED
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HostSamples:
    """Mean, lowest and highest per host and step: hosts x steps x quantities.

    NaN without a value.
    """

    hosts: list[str]
    omitted: int
    """Number of hosts beyond MOST_HOSTS."""
    t_s: list[float]
    """Ends of the steps in seconds since the first sample."""
    count: npt.NDArray[np.int64]
    """Samples in each step, hosts x steps; 0 without any."""
    mean: Array
    low: Array
    high: Array
    quantities: tuple[str, ...] = QUANTITIES
    """QUANTITIES, and those of COUNTED that some host has."""
    began_s: float | None = None
    """Time of the first sample in seconds since the epoch; None in some files."""

    @property
    def step_s(self) -> float | None:
        """Length of a step that combines several samples, else None."""
        return self.t_s[0] if self.count.size and self.count.max() > 1 else None


def read_samples(file: Path) -> HostSamples:
    """Read `samples.json`. Raise OSError or ValueError."""
    with file.open() as stream:
        fold = _Fold(_duration_s(file))
        for rows in _pieces(stream):
            fold.add(rows)
    return fold.result()


def _duration_s(file: Path) -> float:
    """Return the time of the last row, without reading the file before it."""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - _TAIL_BYTES))
        times = re.findall(rb'"t_s": ?([0-9.e+-]+)', stream.read())
    return float(times[-1]) if times else 0.0


def _pieces(stream: TextIO) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of a JSON array of flat objects, piece by piece."""
    rest = ""
    while piece := stream.read(_PIECE):
        budget.check()
        rest += piece
        end = rest.rfind("}") + 1
        rows, rest = rest[:end], rest[end:]
        if len(rest) > _PIECE:
            raise ValueError("a row is too long")
        if rows:
            yield json.loads(f"[{rows.lstrip(_BETWEEN)}]")
    if rest.strip(_BETWEEN + "]"):
        raise ValueError("the file ends in the middle of a row")


class _Fold:
    """Combines rows into steps: one per interval, at most MOST_STEPS."""

    def __init__(self, duration_s: float) -> None:
        self._width_s = duration_s / MOST_STEPS if duration_s > MOST_STEPS else None
        self._hosts: dict[str, int] = {}
        self._ends: dict[float, int] = {}
        self._before_s = self._now_s = 0.0
        self._began_s: float | None = None
        shape = (MOST_HOSTS, MOST_STEPS + 1)
        self._count = np.zeros(shape, dtype=np.int64)
        self._sum = np.zeros((*shape, len(_ALL)))
        self._weight = np.zeros_like(self._sum)
        self._low = np.full_like(self._sum, np.inf)
        self._high = np.full_like(self._sum, -np.inf)

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add further rows in the order of time."""
        try:
            taken = [row for row in map(self._row, rows) if row is not None]
        except (KeyError, TypeError):
            raise ValueError("a row is not that of a host") from None
        if not taken:
            return
        values = np.array(taken, dtype=float)
        at = (values[:, 0].astype(int), values[:, 1].astype(int))
        length_s, quantities = values[:, 2:3], values[:, 3:]
        weight = np.where(np.isnan(quantities), 0.0, length_s)
        np.add.at(self._count, at, 1)
        np.add.at(self._weight, at, weight)
        np.add.at(self._sum, at, np.nan_to_num(quantities) * weight)
        np.minimum.at(self._low, at, np.where(weight, quantities, np.inf))
        np.maximum.at(self._high, at, np.where(weight, quantities, -np.inf))

    def _row(self, row: Mapping[str, Any]) -> Sequence[float] | None:
        t_s = row["t_s"]
        self._began_s = row.get("began_s", self._began_s)
        if t_s != self._now_s:
            self._before_s, self._now_s = self._now_s, t_s
        length_s = t_s - self._before_s
        host = self._hosts.setdefault(row["host"], len(self._hosts))
        if host > MAX_HOSTS:
            raise ValueError("it has more hosts than a trial")
        if host >= MOST_HOSTS or length_s <= 0:
            return None
        system = row["cpu_system_share"]
        return (
            host,
            self._step(t_s),
            length_s,
            row["cpu_user_share"] + system,
            system,
            row["runnable"],
            row["memory_bytes"],
            row["tx_Bps"],
            row["rx_Bps"],
            row.get("drops", 0) / length_s,
            *(row.get(name, np.nan) for name in COUNTED),
        )

    def _step(self, t_s: float) -> int:
        if self._width_s is None:
            step = self._ends.setdefault(t_s, len(self._ends))
            if step > MOST_STEPS:
                raise ValueError("it has more than one sample a second")
            return step
        return min(max(ceil(t_s / self._width_s) - 1, 0), MOST_STEPS - 1)

    def result(self) -> HostSamples:
        hosts = list(self._hosts)[:MOST_HOSTS]
        ends = (
            list(self._ends) if self._width_s is None else [self._width_s * step for step in range(1, MOST_STEPS + 1)]
        )
        filled = (slice(len(hosts)), slice(len(ends)))
        weight = self._weight[filled]
        present = [index for index, name in enumerate(_ALL) if name in QUANTITIES or weight[:, :, index].any()]
        weight = weight[:, :, present]
        is_there = weight > 0
        return HostSamples(
            hosts=hosts,
            omitted=len(self._hosts) - len(hosts),
            t_s=ends,
            count=self._count[filled],
            mean=np.where(is_there, self._sum[filled][:, :, present] / np.where(is_there, weight, 1.0), np.nan),
            low=np.where(is_there, self._low[filled][:, :, present], np.nan),
            high=np.where(is_there, self._high[filled][:, :, present], np.nan),
            quantities=tuple(_ALL[index] for index in present),
            began_s=self._began_s,
        )
