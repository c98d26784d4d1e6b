"""Match of launch command and MPI library, before the start and after. Pure.

After the start, from the ranks' reports. A program whose library does not understand its launcher does not fail: each
of n ranks runs as a program of one rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from analysis.numbers import plural
from workers.launchers.mpi_choice import MPICH, OPEN_MPI, launcher_of, library_of
from workers.trial.rank_usage import RankUsage

_SIZE: Final = {OPEN_MPI: "OMPI_COMM_WORLD_SIZE", MPICH: "PMI_SIZE"}
_RANK: Final = {OPEN_MPI: "OMPI_COMM_WORLD_RANK", MPICH: "PMI_RANK"}
_OWN_LAUNCH: Final = "its script launches a world of its own. Start the program itself in the script, without mpirun."


def why_singletons(environment: Mapping[str, Any], *, program: str, ranks: int, setting: bool) -> str | None:
    """Return why each of ``ranks`` would run alone, with a fix; else None.

    ``setting``: whether the cluster's settings choose the launching library.
    """
    built = library_of((environment.get("program") or {}).get("libraries") or ())
    launcher = launcher_of(environment.get("mpi"))
    if ranks < 2 or built is None or launcher is None or built[0] == launcher:
        return None
    would = f"it would run as {plural(ranks, 'program')} of one rank each"
    fix = _suggested_fix(built[0], launcher, setting)
    return f"{program} is built with {built[0]} ({built[1]}), and {_mismatch(launcher, would)} {fix}"


@dataclass(frozen=True, slots=True)
class World:
    """Observed world of the ranks' programs.

    ``problem``: why the trial is not the requested one; else ``summary``, a description; ``checked``: whether all ranks were
    observed.
    """

    problem: str = ""
    summary: str = ""
    checked: bool = True


def world_of(usages: Sequence[RankUsage], version: str | None, *, ranks: int, setting: bool) -> World:
    """Judge the world of ``usages`` against the requested ``ranks``.

    ``version`` is the launch command's version text, ``setting`` as for ``why_singletons``.
    """
    if ranks < 2:
        return World()
    seen = [(usage, library_of(usage.mpi_libraries)) for usage in usages]
    with_library = [(usage, library) for usage, library in seen if library is not None]
    for usage, (family, library) in with_library:
        if problem := _other_world(usage, family, library, ranks, launcher_of(version), setting):
            return World(problem)
    if not with_library:
        return World(summary=f"not checked: no MPI library was seen in any of {plural(ranks, 'rank')}", checked=False)
    libraries = ", ".join(dict.fromkeys(library for _, (_, library) in with_library))
    if len(with_library) < ranks:
        summary = f"{len(with_library)} of {plural(ranks, 'rank')} seen with an MPI library ({libraries}); the others were not checked"
        return World(summary=summary, checked=False)
    if any(_size(usage, family) is None for usage, (family, _) in with_library):
        summary = f"{plural(ranks, 'rank')} with an MPI library ({libraries}); its launcher does not report the size of the world"
        return World(summary=summary, checked=False)
    return World(summary=f"{plural(ranks, 'rank')} in one world, as requested ({libraries})")


def _other_world(
    usage: RankUsage, family: str, library: str, ranks: int, launcher: str | None, setting: bool
) -> str | None:
    """Return why this rank's program is in another world, in sentences."""
    where = f"Rank {usage.rank} on {usage.host}"
    size, rank = _size(usage, family), _number(usage.mpi_world.get(_RANK[family]))
    if size is None and not _has_pmix(usage, family):
        other = launcher if launcher not in (None, family) else None
        ran = f"it ran as one of {plural(ranks, 'program')} of one rank each"
        strangers = _mismatch(other, ran) if other else f"no launcher variable describes its world: {ran}."
        return f"{where} loaded {family} ({library}), and {strangers} {_suggested_fix(family, other, setting)}"
    if size is not None and size != ranks:
        return f"{where} ran in a world of {plural(size, 'rank')}, and {ranks} were requested: {_OWN_LAUNCH}"
    if rank is not None and rank != usage.rank:
        return f"{where} ran as rank {rank} of another world: {_OWN_LAUNCH}"
    return None


def _size(usage: RankUsage, family: str) -> int | None:
    """Return the size of the world in the launcher's variables, or None."""
    by_pmix = (_SIZE[OPEN_MPI], "SLURM_STEP_NUM_TASKS") if _has_pmix(usage, family) else ()
    sizes = (usage.mpi_world[name] for name in (_SIZE[family], *by_pmix) if name in usage.mpi_world)
    return _number(next(sizes, None))


def _has_pmix(usage: RankUsage, family: str) -> bool:
    """Return whether a PMIx server describes the world; MPICH's family may use it too."""
    understands = family == OPEN_MPI or any(name.startswith("libpmix") for name in usage.mpi_libraries)
    return understands and "PMIX_RANK" in usage.mpi_world


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _mismatch(launcher: str, outcome: str) -> str:
    return f"the launch command is that of {launcher}: {outcome}."


def _suggested_fix(family: str, launcher: str | None, setting: bool) -> str:
    target = "openmpi" if family == OPEN_MPI else "mpich"
    if launcher is None:
        passing = "Let its script pass on the environment of the launch command"
        return f"{passing}, or choose another “Launcher” of the cluster." if setting else f"{passing}."
    compiler = f"with the compiler of {launcher}."
    if setting:
        return f"Set “mpi” of the cluster to {target}, or build it {compiler}"
    return f"Build it {compiler}"
