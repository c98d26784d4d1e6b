"""TIP4P water in LAMMPS: the study of Guster et al. (2007), re-run today.

The model is Jorgensen's four-site water (charge site 0.15 A from the oxygen) with long-range electrostatics (PPPM) and rigid
molecules (SHAKE).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from pydantic import field_validator

from experiments.errors import OutputError
from experiments.workloads.base import OwnTime, Parameters, Parsed, WorkloadDefinition, figures_of
from experiments.workloads.fields import parameter
from experiments.workloads.outputs import Line, results

_LATTICE_A: Final = 3.1
"""Lattice constant in angstrom that gives water's density with one molecule per cell."""

_INPUT: Final = """\
units real
atom_style full
lattice sc {lattice}
region box block 0 {nx} 0 {ny} 0 {nz}
create_box 2 box bond/types 1 angle/types 1 extra/bond/per/atom 2 extra/angle/per/atom 1 extra/special/per/atom 2
mass 1 15.9994
mass 2 1.008
pair_style lj/cut/tip4p/long 1 2 1 1 0.15 8.5
pair_coeff 1 1 0.16275 3.16435
pair_coeff 2 2 0.0 0.0
bond_style harmonic
bond_coeff 1 450 0.9572
angle_style harmonic
angle_coeff 1 55 104.52
kspace_style pppm/tip4p 1.0e-4
molecule water water.mol
create_atoms 0 box mol water 12345
neighbor 2.0 bin
neigh_modify every 1 delay 0 check yes
timestep 1.0
velocity all create {temperature} 4928459
fix 1 all shake 0.0001 20 0 b 1 a 1
fix 2 all nvt temp {temperature} {temperature} 100.0
thermo {thermo}
run {steps}
"""

_MOLECULE: Final = """\
# one TIP4P water molecule

3 atoms
2 bonds
1 angles

Coords

1 0.00000 -0.06556 0.00000
2 0.75695 0.52032 0.00000
3 -0.75695 0.52032 0.00000

Types

1 1
2 2
3 2

Charges

1 -1.0400
2 0.5200
3 0.5200

Bonds

1 1 1 2
2 1 1 3

Angles

1 1 2 1 3

Shake Flags

1 1
2 1
3 1

Shake Atoms

1 1 2 3
2 1 2 3
3 1 2 3

Shake Bond Types

1 1 1 1
2 1 1 1
3 1 1 1

Special Bond Counts

1 2 0 0
2 1 1 0
3 1 1 0

Special Bonds

1 2 3
2 1 3
3 1 2
"""

_LOOP = re.compile(r"Loop time of (\S+) on (\d+) procs for (\d+) steps with (\d+) \w+")
_PERFORMANCE = re.compile(r"Performance: (\S+) (ns|tau)/day, (?:\S+ hours/ns, )?(\S+) timesteps/s")
"""Logs in units of Lennard-Jones count in tau."""
_CPU_USE = re.compile(r"(\S+)% CPU use with \d+ MPI tasks")
_BEGUN = re.compile(r"Setting up \S+ (?:run|style)|Per MPI rank memory allocation")
_SECTIONS: Final = {
    "Pair": "forces between near atoms",
    "Bond": "forces of bonds and angles",
    "Kspace": "electric forces between far atoms, by Fourier transforms",
    "Neigh": "lists of near atoms",
    "Comm": "messages between ranks",
    "Output": "printing and writing files",
    "Modify": "moving the atoms, with thermostat and rigid bonds",
    "Other": "the rest of the loop",
}
"""Sections of LAMMPS's timing breakdown, and their work."""
_HEADS = re.compile(r"Section +\|(.*)")
_BREAKDOWN = re.compile(rf"({'|'.join(_SECTIONS)}) *\|(.*)")
_COLUMNS: Final = {"min time": "min_s", "avg time": "mean_s", "max time": "max_s", "%total": "share_percent"}


_FIGURES: Final = figures_of("water", (
    ("loop_time_s", "Loop time", "s", "lower", "LAMMPS's own wall time of the time-step loop."),
    ("ns_per_day", "Simulated time per day", "ns/day", "higher", "Simulated nanoseconds per day of wall time."),
    ("timesteps_per_s", "Time steps per second", "1/s", "higher", "Time steps per second of loop time."),
    ("cpu_use_percent", "CPU use", "%", "higher", "CPU time of the loop over its wall time, mean of the ranks, as printed."),
    *(
        (f"{name.lower()}_s", f"{name} time", "s", "lower", f"Section {name} of LAMMPS's breakdown, mean of the ranks: {work}.")
        for name, work in _SECTIONS.items()
    ),
))  # fmt: skip


class WaterParameters(Parameters):
    """Size and length of the simulation."""

    molecules: int = parameter(512, "Molecules", ge=64, le=262_144)
    """Water molecules in the box."""
    steps: int = parameter(300, "Steps", ge=1, le=10_000_000)
    """Time steps of 1 fs."""
    temperature: float = parameter(300.0, "Temperature", unit="K", gt=0, le=2000)
    """Target of the thermostat."""

    @field_validator("molecules")
    @classmethod
    def _fill_a_box(cls, molecules: int) -> int:
        if not _is_compact(molecules):
            below = next(n for n in range(molecules, 0, -1) if _is_compact(n))
            above = next(n for n in itertools.count(molecules) if _is_compact(n))
            raise ValueError(f"{molecules} molecules fill no box near to a cube; try {below} or {above}")
        return molecules


def command(parameters: WaterParameters, *, ranks: int) -> tuple[str, ...]:
    return ("lmp", "-in", "in.water", "-log", "none")


def files(parameters: WaterParameters, *, ranks: int) -> Mapping[str, str]:
    nx, ny, nz = box_sides(parameters.molecules)
    text = _INPUT.format(
        lattice=_LATTICE_A,
        nx=nx,
        ny=ny,
        nz=nz,
        temperature=parameters.temperature,
        steps=parameters.steps,
        thermo=max(1, parameters.steps // 10),
    )
    return {"in.water": text, "water.mol": _MOLECULE}


def parse(output: str, files: Mapping[str, str]) -> Parsed:
    run = _last_run(results(output))
    ((line, loop),) = _matches(_LOOP, run)[:1]
    figures: dict[str, float] = {"water.loop_time_s": line.figure(loop[1])}
    ran_with = {name: line.whole(loop[number]) for number, name in ((2, "ranks"), (3, "steps"), (4, "molecules"))}
    ran_with["molecules"] = line.whole(loop[4]).to(int(loop[4]) / 3)
    for line, printed in _matches(_PERFORMANCE, run)[:1]:
        if printed[2] == "ns":
            figures["water.ns_per_day"] = line.figure(printed[1])
        figures["water.timesteps_per_s"] = line.figure(printed[3])
    for line, printed in _matches(_CPU_USE, run)[:1]:
        figures["water.cpu_use_percent"] = line.figure(printed[1])
    rows = _breakdown(run)
    figures |= {f"water.{row['section'].lower()}_s": row["mean_s"] for row in rows if row["mean_s"] is not None}
    return Parsed(figures, {"MPI task timing breakdown": rows}, ran_with)


def estimate_s(parameters: WaterParameters, *, ranks: int) -> float:
    # On two cores 512 molecules take 6 ms a step; every step also waits for its slowest rank, and if virtual hosts share the cores
    # that grows with the square of their number: 16 ms at 4 ranks, 0.1 s at 12.
    return 0.5 + parameters.steps * (1.2e-5 * parameters.molecules + 7e-4 * min(ranks, 16) ** 2)


WATER: Final = WorkloadDefinition(
    slug="water",
    title="TIP4P water",
    summary="LAMMPS molecular dynamics; scales until messages dominate",
    programs={"lmp": "lammps"},
    parameters_type=WaterParameters,
    figures=_FIGURES,
    decides="water.loop_time_s",
    own_time=OwnTime("water.loop_time_s", "water.cpu_use_percent"),
    breakdown=tuple(f"water.{name.lower()}_s" for name in _SECTIONS),
    command=command,
    files=files,
    parse=parse,
    estimate_s=estimate_s,
)
"""LAMMPS, pair style ``lj/cut/tip4p/long`` with ``pppm/tip4p`` and SHAKE."""


def _matches(pattern: re.Pattern[str], lines: Sequence[Line]) -> list[tuple[Line, re.Match[str]]]:
    return [(line, match) for line in lines if (match := pattern.match(line.text))]


def _last_run(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the last run of a log from its loop time on; minimisations print no rate."""
    begins = [number for number, line in enumerate(lines) if _LOOP.match(line.text)]
    for begin, end in zip(reversed(begins), [len(lines), *reversed(begins)], strict=False):
        run = lines[begin:end]
        if end == len(lines):
            for line, _ in _matches(_BEGUN, run):
                raise line.refused("a further run of LAMMPS did not reach its end")
        if _matches(_PERFORMANCE, run):
            return run
        if not _matches(_CPU_USE, run):
            raise lines[begin].refused("LAMMPS printed no performance: the run did not reach its end")
    raise OutputError("LAMMPS printed no loop time: the run did not reach its end")


def _breakdown(run: Sequence[Line]) -> list[dict[str, Any]]:
    """Return the rows of the timing breakdown. Raise OutputError for a cut one."""
    heads = [[head.strip() for head in match[1].split("|")] for _, match in _matches(_HEADS, run)[:1]]
    rows = []
    for line, match in _matches(_BREAKDOWN, run) if heads else ():
        values = line.cells(heads[0], [cell.strip() for cell in match[2].split("|")])
        row = {name: line.figure(values[head]) if values[head] else None for head, name in _COLUMNS.items()}
        rows.append({"section": match[1], **row})
    return rows


def _is_compact(molecules: int) -> bool:
    shortest, _, longest = box_sides(molecules)
    return longest <= 2 * shortest


@lru_cache(maxsize=4096)  # asked once per configuration of a sweep
def box_sides(molecules: int) -> tuple[int, int, int]:
    """Return the sides of a box of ``molecules`` cells, as near to a cube as possible."""
    best = (1, 1, molecules)
    for x in range(1, round(molecules ** (1 / 3)) + 1):
        if molecules % x:
            continue
        rest = molecules // x
        y = next(y for y in range(int(rest**0.5), 0, -1) if rest % y == 0)
        shortest, middle, longest = sorted((x, y, rest // y))
        if longest - shortest < best[2] - best[0]:
            best = (shortest, middle, longest)
    return best
