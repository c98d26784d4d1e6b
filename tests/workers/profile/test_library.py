"""The library loads on the hosts of clusters, or says why there is none."""

from __future__ import annotations

import pytest

from workers.errors import ProfileUnavailable
from workers.profile.library import library, library_path


@pytest.mark.parametrize(("machine", "said"), [("riscv64", "architecture riscv64"), ("", "that they do not tell")])
def test_another_architecture_has_none(machine: str, said: str) -> None:
    with pytest.raises(ProfileUnavailable, match=said):
        library(machine)


def test_it_needs_no_newer_c_library_than_2_17() -> None:
    """Versions of symbols that it asks the C library for stand in it as text."""
    text = library().read_bytes()
    asked = {
        tuple(map(int, version.split(b".")))
        for version in (part.split(b"\0")[0] for part in text.split(b"GLIBC_")[1:])
        if version[:1].isdigit()
    }
    assert asked
    assert max(asked) <= (2, 17)
    assert library() == library_path()
