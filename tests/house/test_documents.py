"""Documents: all links, commands, options, settings and modules exist."""

from __future__ import annotations

import importlib.util
import re
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.urls import Resolver404, resolve

from config.environment import Environment
from dashboard.help.markdown import slug

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "decisions")
DOCUMENTS = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"))]
CONTAINERS = {"RANKWIRE_URL", "RANKWIRE_TOKEN", "RANKWIRE_TOKEN_FILE", "RANKWIRE_VAR"}
"""Variables that are not settings of the server."""
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def prose(document: Path) -> str:
    return re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)


def anchors(document: Path) -> set[str]:
    text = document.read_text()
    headings = {slug(re.sub(r"[`*]", "", title)) for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
    return headings | set(re.findall(r"^\| `([\w.-]+)`", text, re.MULTILINE))


def options(parser: ArgumentParser) -> set[str]:
    """Return the options of a command and of its subcommands."""
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            found.update(*(options(each) for each in action.choices.values()))
    return found


def test_index_lists_every_page() -> None:
    listed = {(DOCS / target.partition("#")[0]).resolve() for target in _LINK.findall((DOCS / "index.md").read_text())}
    assert sorted(name_of(page) for page in PAGES if page.name != "index.md" and page.resolve() not in listed) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_to_files_and_headings(document: Path) -> None:
    for target in _LINK.findall(prose(document)):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        linked = (document.parent / path).resolve() if path else document
        assert linked.exists(), target
        if anchor and linked.suffix == ".md":
            assert anchor in anchors(linked), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_commands_exist_with_their_options(document: Path) -> None:
    known = get_commands()
    for script, arguments in re.findall(r"\bscript/([a-z-]+)((?: [^\n`|]+)?)", document.read_text()):
        if script == "packages":
            continue
        assert (ROOT / "script" / script).exists(), script
        name, *rest = arguments.split() or [""]
        if script == "manage" and re.fullmatch(r"[a-z_]+", name):
            assert name in known, name
            parser: ArgumentParser = load_command_class(known[name], name).create_parser("manage.py", name)
            for option in re.findall(r"--[a-z][\w-]*", " ".join(rest).partition("#")[0]):
                assert option in options(parser), f"{name} {option}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_settings_and_modules_exist(document: Path) -> None:
    text = document.read_text()
    names = set(re.findall(r"\bRANKWIRE_[A-Z_]+[A-Z]\b", text)) - CONTAINERS
    assert names - set(Environment.model_fields) - {f"{name}_FILE" for name in Environment.model_fields} == set()
    for module in re.findall(r"python -m ([a-z_.]+[a-z])", text):
        assert importlib.util.find_spec(module), module


def test_addresses_of_rest_exist() -> None:
    rows = re.findall(r"^\| (`.+?`.*?) \|", (DOCS / "reference" / "rest-addresses.md").read_text(), re.MULTILINE)
    addresses = {found for row in rows for found in re.findall(r"`(?:GET|POST|PUT|DELETE) ([^`? ]+)", row)}
    assert len(addresses) > 50
    missing = []
    for address in sorted(addresses):
        path = re.sub(r"\bFORM\b", "csv", re.sub(r"\b(ID|NUMBER|VERSION)\b", "1", address))
        path = re.sub(r"\b(CONFIGURATION)\b", "a" * 64, re.sub(r"\b(SLUG|CLUSTER|NAME)\b", "x", path))
        try:
            resolve(f"/api/v1/{path}")
        except Resolver404:
            missing.append(address)
    assert missing == []
