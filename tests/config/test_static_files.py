"""The files that browsers load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles.finders import find
from django.core.management import call_command

from config.staticfiles import FILES, ManifestStorage, NodeModulesFinder


@pytest.mark.parametrize("target", FILES)
def test_it_finds_every_named_front_end_file(target: str) -> None:
    names = [name for name, storage in NodeModulesFinder().list(None) if storage.prefix == target]  # type: ignore[attr-defined]
    assert names
    for name in names:
        assert Path(str(find(f"{target}/{name}"))).is_file()


def test_it_collects_them_with_no_reference_left_open(tmp_path: Path, settings: Any) -> None:
    """The storage refuses a style sheet that names a file which does not exist."""
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": "config.staticfiles.ManifestStorage"}}
    call_command("collectstatic", interactive=False, verbosity=0)
    assert (tmp_path / "staticfiles.json").is_file()
    served = ManifestStorage(location=tmp_path).stored_name("rankwire.css")
    assert served != "rankwire.css"
    assert (tmp_path / served).is_file()
    assert (tmp_path / f"{served}.gz").is_file()
