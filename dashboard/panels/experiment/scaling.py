"""Charts of scaling studies: speed-up, efficiency, time breakdown, models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from analysis.conclusions import Curve, Diagnosis, Model
from analysis.conclusions.sentences.findings import BASE
from dashboard.charts.fits import Fitted
from dashboard.charts.parts import Figure, Line, Published
from dashboard.charts.ranks import BLOCKED_IN_MPI
from dashboard.charts.scaling import SCALED, SPEED_UP, Best, efficiency, speed_up, time_parts
from dashboard.labels import value_words
from dashboard.panels.experiment.axes import groups_without
from experiments import workloads
from experiments.metrics import find
from experiments.models import Experiment
from experiments.selectors import ConfigurationRow

TIME: Final = "elapsed_s"
CPU: Final = "cpu_mean_rank_s"
WINDOW: Final = "mpi_window_s"
_SPLIT: Final = ("mpi_descheduled_share", "mpi_blocked_outside_share")
_NOT_SPLIT: Final = ("mpi_no_core_share",)
"""Divided further if the kernel of every host counts run delay."""
OFF_IN_MPI: Final = "mpi_blocked_share"
DESCHEDULED_IN_MPI: Final = "mpi_descheduled_inside_share"
IN_WINDOW: Final = ("mpi_useful_share", *_NOT_SPLIT, *_SPLIT, "mpi_on_cpu_share", OFF_IN_MPI, DESCHEDULED_IN_MPI)
_OUTSIDE: Final = "Before MPI_Init, after MPI_Finalize"
_SHOWN_LAWS: Final = ("usl", "amdahl", "gustafson")
SHORT: Final = {"usl": "USL", "amdahl": "Amdahl", "gustafson": "Gustafson", "pmnf": "PMNF", "constant": "constant"}
"""Short names of models for legends."""
MOST_BARS: Final = 24
"""More bars are not readable."""


def breakdown_metrics(experiment: Experiment) -> tuple[str, ...]:
    """Metrics of the workload's time breakdown, if it reports one."""
    workload = workloads.find(experiment.workload)
    return () if workload is None else workload.breakdown


def fits_of(diagnosis: Diagnosis | None, metric: str) -> list[Fitted]:
    """Return the chosen model of a metric as a curve, or nothing."""
    model = _model(diagnosis, metric)
    if model is None or model.chosen is None:
        return []
    return [
        _fitted(curve, f"Model ({SHORT[curve.model]})")
        for curve in model.curves
        if curve.model == model.chosen.model and curve.model != "constant"
    ]


def _model(diagnosis: Diagnosis | None, metric: str) -> Model | None:
    if diagnosis is None or len(diagnosis.slices) != 1:
        return None
    return diagnosis.slices[0].models.get(metric)


def _fitted(curve: Curve, name: str) -> Fitted:
    return Fitted(name, curve.x, curve.y, curve.low, curve.high, curve.measured)


class ScalingCharts:
    """Charts of rows with different numbers of hosts, one series per slice."""

    def __init__(
        self,
        rows: Sequence[ConfigurationRow],
        swept: Sequence[str],
        *,
        name: str,
        weak: bool = False,
        rate: str = "",
        time: str = TIME,
        diagnosis: Diagnosis | None = None,
        published: Mapping[str, Sequence[ConfigurationRow]] | None = None,
    ) -> None:
        self.diagnosis = diagnosis
        self.published = published or {}
        """Return rows of published studies over hosts alone, by name."""
        self.weak = weak
        self.rate = rate
        """Metric of the speed-up, if a rate decides; else ``time`` gives it."""
        self.time = time
        self.rows = [row for row in rows if row.values.get(TIME)]
        self.smallest = min((row.hosts for row in rows), default=1)
        self.groups = self._grouped(self.rows, swept, name)
        sized = [row for row in rows if row.values.get(self.metric)]
        self.sized = self._grouped(sized, swept, name)

    @staticmethod
    def _grouped(
        rows: Sequence[ConfigurationRow], swept: Sequence[str], name: str
    ) -> dict[str, list[ConfigurationRow]]:
        return {
            group or name: sorted(members, key=lambda row: row.hosts)
            for group, members in groups_without(rows, swept, "hosts").items()
            if members
        }

    @property
    def metric(self) -> str:
        return self.rate or self.time

    @property
    def quantity(self) -> str:
        """Return the name of the speed-up; it is scaled if the work grows with the hosts."""
        return SCALED if self.weak else SPEED_UP

    @property
    def left_out(self) -> int:
        return max(0, len(self.sized) - 6)

    @property
    def reference(self) -> int:
        """Return the smallest measured size; before the first trial that of the design."""
        return min((row.hosts for rows in self.sized.values() for row in rows), default=self.smallest)

    def _lines(self, *, per_host: bool) -> list[Line]:
        """Return the speed-up of every trial; `per_host` divides it by the ideal."""
        lines = []
        for name, rows in self.sized.items():
            of_smallest, smallest = rows[0].values[self.metric], rows[0].hosts
            # The median of the smallest size's own speed-ups is 1, for even numbers of trials too.
            inverses = [1 / value for value in of_smallest if value > 0]
            base = median(of_smallest) if self.rate or not inverses else 1 / median(inverses)
            trials, ids = [], []
            for row in rows:
                ideal = row.hosts / smallest
                # A rate grows with the problem by itself.
                factor = (ideal if self.weak and not self.rate else 1.0) / (ideal if per_host else 1.0)
                values = zip(row.values[self.metric], row.trial_ids[self.metric], strict=True)
                timed = [(value, pk) for value, pk in values if value > 0 and base > 0]
                trials.append(
                    [(value / base if self.rate else base / value) * factor for value, _ in timed if base > 0]
                )
                ids.append([pk for _, pk in timed])
            lines.append(Line(name, [row.hosts for row in rows], trials, [row.pk for row in rows], ids))
        return lines

    def speed_up(self) -> Figure:
        return speed_up(
            self._lines(per_host=False),
            self._model_speed_ups(),
            published=self._references(per_host=False),
            ideal_from=self.reference,
            best=self._best(),
            quantity=self.quantity,
        )

    def efficiency(self) -> Figure:
        return efficiency(self._lines(per_host=True), self._references(per_host=True))

    def _references(self, *, per_host: bool) -> list[Published]:
        """Return published speed-up against its own smallest size."""
        references = []
        for name, rows in self.published.items():
            timed = sorted((row for row in rows if row.median(self.metric)), key=lambda row: row.hosts)
            sizes = [row.hosts for row in timed]
            if len(timed) < 2 or len(set(sizes)) < len(sizes):
                continue  # other parameters vary too: several curves
            smallest, values = sizes[0], [row.median(self.metric) or 1.0 for row in timed]
            speed_ups = [value / values[0] if self.rate else values[0] / value for value in values]
            shares = [s * smallest / hosts for s, hosts in zip(speed_ups, sizes, strict=True)]
            drawn = shares if per_host else [s * smallest / self.reference for s in speed_ups]
            references.append(Published(name, sizes, drawn, of=[row.pk for row in timed]))
        return references

    def _model_speed_ups(self) -> list[Fitted]:
        """Return the laws and the chosen model as speed-up against the reference."""
        model = _model(self.diagnosis, TIME) if self.metric == TIME else None
        if model is None or model.chosen is None or not self.rows:
            return []
        rows = next(iter(self.groups.values()))
        base, smallest = median(rows[0].values[TIME]), rows[0].hosts
        chosen = model.chosen.model
        curves = [curve for curve in model.curves if curve.model == chosen or curve.model in _SHOWN_LAWS]
        curves.sort(key=lambda curve: curve.model != chosen)
        return [
            self._as_speed_up(
                curve, base, smallest, f"{SHORT[curve.model]}{', chosen' if curve.model == chosen else ''}"
            )
            for curve in curves[:3]
        ]

    def _as_speed_up(self, curve: Curve, base: float, smallest: int, name: str) -> Fitted:
        factors = [base * (x / smallest if self.weak else 1.0) for x in curve.x]

        def through(times: Sequence[float | None]) -> list[float | None]:
            return [None if t is None or t <= 0 else f / t for t, f in zip(times, factors, strict=True)]

        middle = [f / t for t, f in zip(curve.y, factors, strict=True)]
        low, high = through(curve.high), through(curve.low)  # the slowest is the smallest speed-up
        return Fitted(name, curve.x, middle, low, high, curve.measured)

    def _best(self) -> Best | None:
        model = _model(self.diagnosis, TIME) if self.metric == TIME else None
        if model is None or model.chosen is None:
            return None
        best, drawn = model.chosen.best_size, max(model.curves[0].x)
        if best is None or best.value > drawn:  # an infinite one too
            return None
        return Best(best.value, best.low, best.high)

    @staticmethod
    def _is_profiled(rows: Sequence[ConfigurationRow]) -> bool:
        return bool(rows) and all(row.values.get(WINDOW) for row in rows)

    @property
    def base(self) -> str:
        """Return the name of what the shares of the time breakdown are of."""
        return BASE[self._is_profiled([row for row in self.rows if row.values.get(CPU)][:MOST_BARS])]

    def time_views(self, parts: Sequence[str]) -> list[tuple[str, Figure]]:
        """Return (view, figure): seconds, shares, and the workload's breakdown."""
        rows = [row for row in self.rows if row.values.get(CPU)][:MOST_BARS]
        labels, keys = self._labels(rows), [row.pk for row in rows]
        profiled, base = self._is_profiled(rows), self.base
        time = seconds_inside_mpi(rows) if profiled else _by_cpu_time(rows)
        wholes = [row.median(WINDOW if profiled else TIME) or 0.0 for row in rows]
        views = [
            ("Seconds", time_parts(labels, time, wholes, of=keys, outside=_OUTSIDE, base=base)),
            ("Share", time_parts(labels, time, wholes, of=keys, outside=_OUTSIDE, shares=base, base=base)),
        ]
        printed = {part: [row.median(part) for row in self.rows[:MOST_BARS]] for part in parts}
        if any(v is not None for values in printed.values() for v in values):
            views.append(("By the workload", self._printed(printed)))
        return views

    def _printed(self, parts: Mapping[str, Sequence[float | None]]) -> Figure:
        rows = self.rows[:MOST_BARS]
        return time_parts(self._labels(rows), _largest(parts), of=[row.pk for row in rows])

    def _labels(self, rows: Sequence[ConfigurationRow]) -> list[str]:
        if len(self.groups) < 2:
            return [value_words("hosts", row.hosts) for row in rows]
        short = _without_common_words(list(self.groups))
        of = {row.pk: name for name, members in zip(short, self.groups.values(), strict=True) for row in members}
        return [f"{row.hosts}, {of[row.pk]}" for row in rows]


def _without_common_words(names: Sequence[str]) -> Sequence[str]:
    """Return names without the words that all begin with: bars have little room."""
    words = [name.split(" ") for name in names]
    first = next((i for i, at in enumerate(zip(*words, strict=False)) if len(set(at)) > 1), 0)
    rests = [" ".join(row[first:]) for row in words]
    return rests if all(rest[:1].isalpha() for rest in rests) else names


def _by_cpu_time(rows: Sequence[ConfigurationRow]) -> dict[str, Sequence[float | None]]:
    cpu = [row.median(CPU) for row in rows]
    off = [max(0.0, (row.median(TIME) or 0.0) - (c or 0.0)) for row, c in zip(rows, cpu, strict=True)]
    return {"On the CPU, mean of the ranks": cpu, "Off the CPU": off}


def seconds_inside_mpi(rows: Sequence[ConfigurationRow]) -> dict[str, Sequence[float | None]]:
    """Return the parts of the MPI window and the time outside it, s."""
    window = [row.median(WINDOW) or 0.0 for row in rows]
    left_out = _NOT_SPLIT if all(row.values.get(metric) for metric in _SPLIT for row in rows) else _SPLIT
    parts: dict[str, Sequence[float | None]] = {
        find(metric).label: [(row.median(metric) or 0.0) * s for row, s in zip(rows, window, strict=True)]
        for metric in IN_WINDOW
        if metric not in (*left_out, DESCHEDULED_IN_MPI)
    }
    if all(row.values.get(DESCHEDULED_IN_MPI) for row in rows):
        off_s, label = parts.pop(find(OFF_IN_MPI).label), find(DESCHEDULED_IN_MPI).label
        parts[label] = [(row.median(DESCHEDULED_IN_MPI) or 0.0) * s for row, s in zip(rows, window, strict=True)]
        parts[BLOCKED_IN_MPI] = [max(0.0, (a or 0.0) - (b or 0.0)) for a, b in zip(off_s, parts[label], strict=True)]
    outside = [max(0.0, (row.median(TIME) or 0.0) - s) for row, s in zip(rows, window, strict=True)]
    return {**parts, _OUTSIDE: outside}


def _largest(parts: Mapping[str, Sequence[float | None]], most: int = 6) -> dict[str, Sequence[float | None]]:
    """Return the parts by label, with the smallest ones combined as "other"."""
    ordered = sorted(parts.items(), key=lambda item: -sum(v or 0.0 for v in item[1]))
    largest: dict[str, Sequence[float | None]] = {find(m).label: values for m, values in ordered[: most - 1]}
    rest = [values for _, values in ordered[most - 1 :]]
    if rest:
        largest["Everything else"] = [sum(v or 0.0 for v in column) for column in zip(*rest, strict=True)]
    return largest
