"""The library loads on the hosts of clusters, or says why there is none."""

from __future__ import annotations

import re
import subprocess

import pytest

from analysis.mpi.functions import FUNCTIONS
from workers.errors import ProfileUnavailable
from workers.profile.library import library, library_path


@pytest.mark.parametrize(("machine", "said"), [("riscv64", "architecture riscv64"), ("", "unknown")])
def test_another_architecture_has_none(machine: str, said: str) -> None:
    with pytest.raises(ProfileUnavailable, match=said):
        library(machine)


def test_it_needs_no_newer_c_library_than_2_17() -> None:
    """Versions of symbols that it asks the C library for stand in it as text."""
    text = library().read_bytes()
    request = {
        tuple(map(int, version.split(b".")))
        for version in (part.split(b"\0")[0] for part in text.split(b"GLIBC_")[1:])
        if version[:1].isdigit()
    }
    assert request
    assert max(request) <= (2, 17)
    assert library() == library_path()


def names_of(kind: str) -> set[str]:
    listed = subprocess.run(["nm", "-D", kind, library()], capture_output=True, text=True, timeout=90, check=True)
    return {line.split()[-1] for line in listed.stdout.splitlines()}


def test_it_asks_for_nothing_of_an_mpi_library_when_it_is_loaded() -> None:
    """It looks MPI functions up by name, without a version.

    Libraries of one interface need to share only names and handles.
    """
    assert not {name for name in names_of("--undefined-only") if re.match(r"P?MPI_|p?mpi_|ompi_|ucp_", name)}
    assert {f"MPI_{function.name}" for function in FUNCTIONS} <= names_of("--defined-only")
