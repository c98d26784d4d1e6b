"""Rules for all packages."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from io import StringIO

import pytest
from django.core.management import call_command

from config.services.lease import ROOT
from tests.house.repository import tracked


def test_it_imports_in_one_direction_only() -> None:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    environment = {**os.environ, "PYTHONPATH": "clients/python/src"}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout


def test_tests_take_nothing_from_each_other() -> None:
    borrowed = set()
    for path in tracked("tests/*.py"):
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.ImportFrom):
                module = f"{'.' * node.level}{node.module or ''}"
                names = {module, *(f"{module}.{alias.name}" for alias in node.names)}
            else:
                names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            borrowed |= {f"{path}: {name}" for name in names if re.match(r"(tests\.|\.).*\btest_\w+", name)}
    assert not borrowed, "helpers of several tests live in modules of their own"


def test_browsers_wait_for_functions() -> None:
    """The pages' policy refuses a bare expression after the first look."""
    expressions = []
    for path in tracked("tests/browser/*.py"):
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "wait_for_function":
                awaited = node.args[0]
                if isinstance(awaited, ast.Constant) and not re.match(r"(\w+|\(.*?\)) =>", str(awaited.value)):
                    expressions.append(f"{path}:{node.lineno}: {awaited.value}")
    assert not expressions


@pytest.mark.django_db
def test_it_has_a_migration_for_every_change_of_the_models() -> None:
    output = StringIO()
    try:
        call_command("makemigrations", "--check", "--dry-run", stdout=output)
    except SystemExit:
        pytest.fail(output.getvalue())


def test_it_links_only_to_files_that_exist() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")]
    for document in documents:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
