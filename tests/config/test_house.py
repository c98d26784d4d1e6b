"""What holds for the whole house."""

from __future__ import annotations

import re
import subprocess
import sys
from io import StringIO

import pytest
from django.core.management import call_command

from config.services.lease import ROOT


def test_it_imports_in_one_direction_only() -> None:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


@pytest.mark.django_db
def test_it_has_a_migration_for_every_change_of_the_models() -> None:
    output = StringIO()
    try:
        call_command("makemigrations", "--check", "--dry-run", stdout=output)
    except SystemExit:
        pytest.fail(output.getvalue())


def test_it_links_only_to_files_that_exist() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for document in documents:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
