"""Tutorials and how-to pages are carried out: commands, controls and steps."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from lxml import html
from playwright.sync_api import APIRequestContext, Browser, expect

from config.environment import Environment
from config.services.lease import ROOT, read_state
from tests.browser.journeys.conftest import sign_in
from tests.browser.journeys.guide import DOCUMENTS, STEPS, Block, blocks, controls, instructions
from tests.browser.journeys.hands import Hands
from tests.browser.journeys.installation import Installation

pytestmark = pytest.mark.timeout(400)  # at most 60 s, but the first test waits for the trials of `bench`

PAGES: Final = {document.stem: document for document in DOCUMENTS}

NOT_RUN: Final = {
    "0 2 * * *": "is a line of cron; tests/clients/test_client.py runs its command",
    "0 3 * * *": "is a line of cron",
    "docker compose": "needs Docker; tests/config/test_containers.py checks its file",
    "systemctl enable": "needs systemd; tests/config/test_systemd.py checks the unit",
    "apt-get install": "installs packages; tests/config/test_accounts.py signs in with a directory",
    "sudo chmod o+r /sys": "needs a processor with RAPL",
    "SUBSYSTEM==": "is a rule of udev",
    "sudo groupadd energy": "changes the machine's groups and devices",
    "script/audit": "asks vulnerability databases on the internet",
    "script/offline-bundle": "fetches 450 MB; tests/script/test_offline_bundle.py runs it on a small machine",
    "script/server": "is the installation of this test",
    "script/run experiments/library": "takes minutes; tests/script/test_quick_studies.py runs it at night",
    "git pull": "changes the clone",
    "ssh-keygen": "needs another host; tests/workers/launchers/test_ssh_cluster.py logs in with such keys",
    "createuser": "needs a server of PostgreSQL; tests/config/backup restores into one",
    "git switch": "changes the clone; tests/config/backup restores what an older version made",
    "max by": "a query for Prometheus; tests/config/test_health.py reads its metrics",
}
"""Words of commands that cannot run here -> the reason."""

ENDLESS: Final = {"celery -A config worker": " ready.", "celery -A config beat": "beat: Starting"}
"""Commands that run until they are stopped -> their output when they are ready."""

OWN_INSTALLATION: Final = ("back-up", "run-the-server")
"""Pages that replace the database: they have an installation of their own, which nothing else uses."""

INPUT: Final = {"manage-accounts": 2 * "correct horse battery staple\n"}
"""Answers to the questions of a page's commands."""

PREPARED: Final = {
    "import-results": """
        script/manage bundle SLUG water.zip
        cp tests/data/imb-mpi1-pingpong.txt imb.txt
        curl -sSf -H "Authorization: Bearer $TOKEN" \
          http://127.0.0.1:8000/api/v1/trials/TRIAL/artifacts/capture.pcapng.zst/ | zstd -d | tee wire.pcapng >wire-2.pcapng
    """,
}
"""Commands that make the files that a page is about."""


@pytest.fixture(scope="module")
def words(installation: Installation, bench: tuple[str, str], session_directory: Path) -> dict[str, str]:
    """Return words of the pages with their values here."""
    fast, slow = bench
    (trial,) = installation.ask(f"trials/?experiment={fast}&limit=1")["results"]
    make = "from django.contrib.auth.models import User; User.objects.get_or_create(username='mira')"
    installation.manage("shell", "-v", "0", "-c", make)
    return {
        "SLUG": fast,
        "OTHER": slow,
        "NAME": "mira",
        "DIR": "backups",
        "TRIAL": str(trial["id"]),
        "reparse water-quick": f"reparse {fast}",
        "cluster: rack": "cluster: testbed",
        "workload water": "workload ring",
        "http://127.0.0.1:8000": installation.address,
        "sudo install": "install",
        "var/admin-password": str(installation.var / "admin-password"),
        "/opt/heat": str(session_directory / "heat"),
        # Without script/bootstrap, which has tests of its own and takes longer than most commands.
        **{f"script/{name}": f"{sys.executable} -m config.run {name}" for name in ("manage", "run")},
        **{f"{part}/": f"{ROOT}/{part}/" for part in (".venv", "docs", "tests")},
    }


def here(text: str, words: Mapping[str, str]) -> str:
    """Return a text of a page with the words of this installation."""
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.sub(rf"(?<!\w)(?:{pattern})", lambda match: words[match[0]], text)


def reason(block: Block) -> str | None:
    return next((why for command, why in NOT_RUN.items() if command in block.text), None)


def with_code(document: Path) -> list[Block]:
    return [block for block in blocks(document) if not reason(block)]


@pytest.mark.parametrize("name", [name for name, document in PAGES.items() if with_code(document)])
def test_code_of_a_page_runs(
    name: str, installation: Installation, site: APIRequestContext, words: dict[str, str], tmp_path: Path
) -> None:
    """Files, settings, addresses and commands, in the order of the page."""
    var = tmp_path / "var" if name in OWN_INSTALLATION else installation.var
    for block in (Block("sh", "", PREPARED.get(name, "")), *with_code(PAGES[name])):
        text = here(block.text, words)
        if block.file:
            (tmp_path / block.file).write_text(text)
        if block.language == "ini":
            Environment.of(dict(line.split("=", 1) for line in text.splitlines()))
        elif block.text.startswith("/"):
            assert site.get(text.strip()).ok
        elif block.language == "sh":
            services = addresses(var) if name == "add-workers" else {}
            environment = {**variables(installation), **services, "RANKWIRE_VAR": str(var)}
            run(text, tmp_path, environment, INPUT.get(name, ""))


def variables(installation: Installation) -> dict[str, str]:
    """Return the environment of a user with a token, perhaps root, in the clone."""
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**installation.environment, **allowed, "TOKEN": installation.key, "PYTHONPATH": str(ROOT)}


def addresses(var: Path) -> dict[str, str]:
    """Return what docs/how-to/add-workers.md gives to every machine."""
    services, secret = read_state(var), (var / "secret-key").read_text().strip()
    return {
        "DATABASE_URL": services.database_url,
        "REDIS_URL": services.redis_url,
        "RANKWIRE_SECRET_KEY": secret,
    }


def run(commands: str, directory: Path, variables: Mapping[str, str], answers: str) -> None:
    """Run shell commands, which must succeed; stop those without end when ready."""
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=directory,
        env={**variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    ready = next((output for command, output in ENDLESS.items() if command in commands), None)
    try:
        if ready is None:
            output, _ = process.communicate(answers, timeout=150)
            assert process.returncode == 0, f"{commands}{output}"
        else:
            assert any(ready in line for line in process.stdout or ()), commands
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate(timeout=60)


def test_commands_that_are_not_run_have_a_reason_and_are_on_a_page() -> None:
    text = "".join(block.text for document in DOCUMENTS for block in blocks(document))
    assert [command for command in (*NOT_RUN, *ENDLESS) if command not in text] == []


ADDRESSES: Final = {
    "add-a-cluster": (
        "/clusters/",
        "/clusters/new/?kind=ssh",
        "/clusters/new/?kind=slurm",
        "/clusters/new/?kind=gridengine",
        "/clusters/testbed/edit/",
        "/clusters/testbed/",
        "/trials/TRIAL/",
        "templates/trial/_per_rank.html",
        "templates/charts/_table_tool.html",
        "templates/clusters/cluster.html",
        "templates/clusters/_switch.html",
        "templates/clusters/_test.html",
        "/server/",
    ),
    "add-workers": ("/server/",),
    "bind-ranks": ("/clusters/new/?kind=ssh", "templates/trial/_placement.html"),
    "choose-a-launcher": ("/clusters/new/?kind=slurm", "/clusters/testbed/"),
    "measure-on-infiniband": ("/clusters/new/?kind=ssh",),
    "change-the-network": ("/experiments/SLUG/", "/experiments/new/?from=SLUG"),
    "compare-experiments": ("/experiments/", "/compare/?of=e:SLUG,e:OTHER"),
    "energy-of-a-run": (
        "/experiments/SLUG/",
        "templates/trial/_counters.html",
        "templates/parts/_energy.html",
        "dashboard/panels/parts/energy.py",
        "dashboard/panels/parts/__init__.py",
        "experiments/cluster_kinds/facts.py",
    ),
    "explore-results": ("/explore/", "static/chart-files.js"),
    "export-a-bundle": ("/experiments/SLUG/", "/bundles/new/?of=e:SLUG"),
    "find-the-best-settings": ("/experiments/new/", "templates/parts/_search.html"),
    "find-trials": (
        "/trials/",
        "/experiments/",
        "templates/experiments/_table.html",
        "/experiments/chosen/archive/?of=e:SLUG",
    ),
    "first-experiment": (
        "/sign-in/",
        "/experiments/new/?tour=1",
        "/experiments/SLUG/",
        "templates/new/_preview.html",
        "templates/home/_first_visit.html",
        "analysis/conclusions/text.py",
    ),
    "follow-histories": ("/history/", "templates/history/page.html", "templates/experiment/_more_actions.html"),
    "get-notified": (
        "/account/",
        "/projects/default/",
        "templates/home/_events.html",
        "templates/people/_notices.html",
    ),
    "import-results": ("/experiments/SLUG/", "/imports/", "/experiments/"),
    "let-users-read-rapl": (
        "/clusters/new/?kind=ssh",
        "templates/clusters/_test.html",
        "workers/cluster_check/counters.py",
        "workers/hosts/counters/rapl.py",
    ),
    "manage-accounts": (
        "/people/",
        "/projects/",
        "/changes/",
        "/admin/auth/user/1/change/",
        "dashboard/people/people.py",
    ),
    "measure-network-needs": ("/experiments/SLUG/", "/experiments/new/?network=SLUG"),
    "predict-another-network": ("/network/", "templates/network/_yours.html", "templates/network/_stops.html"),
    "run-in-containers": ("/clusters/new/?kind=ssh",),
    "run-until-answered": ("/experiments/new/", "templates/experiment/_rounds.html", "templates/experiment/page.html"),
    "run-without-a-browser": ("/trials/TRIAL/",),
    "share-a-report": ("/experiments/SLUG/", "templates/reports/page.html", "dashboard/reports/writing.py"),
    "run-the-server": ("/server/", "/clusters/"),
    "share-machines": ("/projects/", "/experiments/SLUG/"),
    "use-a-token": ("/account/",),
    "which-network": ("templates/trial/_counters.html", "templates/trial/_mpi.html"),
    "work-in-projects": (
        "/projects/",
        "/projects/default/",
        "/experiments/SLUG/",
        "/experiments/SLUG/edit/",
        "/account/",
    ),
    "your-cluster": (
        "/clusters/",
        "/clusters/new/?kind=ssh",
        "/clusters/testbed/edit/",
        "templates/clusters/cluster.html",
    ),
    "upgrade": ("/help/",),
    "your-program": (
        "/workloads/",
        "/workloads/new/",
        "templates/workloads/workload.html",
        "/experiments/new/",
        "/experiments/SLUG/",
        "templates/experiment/_more_actions.html",
        "templates/experiment/_running.html",
    ),
}
"""The pages of Rankwire, or the sources of their parts, on which the controls of a page are."""


@pytest.fixture(scope="module")
def site(browser: Browser, installation: Installation) -> Iterator[APIRequestContext]:
    """Requests of a signed-in administrator."""
    with browser.new_context(base_url=installation.address) as context:
        page = context.new_page()
        page.goto("/sign-in/")
        sign_in(Hands(page), "admin", installation.password)
        yield context.request


def texts(site: APIRequestContext, address: str) -> str:
    """Return all texts and attributes of a page, or of a source."""
    if not address.startswith("/"):
        visible = [(ROOT / address).read_text()]
    else:
        response = site.get(address)
        assert response.ok, address
        document = html.fromstring(response.text())
        visible = [*document.itertext(), *document.xpath("//@*")]
    return re.sub(r"\s+", " ", " | ".join(visible))


@pytest.mark.parametrize("name", [name for name, document in PAGES.items() if controls(document)])
def test_controls_of_a_page_exist(name: str, site: APIRequestContext, words: dict[str, str]) -> None:
    visible = " ".join(texts(site, here(address, words)) for address in ADDRESSES.get(name, ()))
    assert [
        control for control in sorted(controls(PAGES[name])) if not re.search(rf"\b{re.escape(control)}\b", visible)
    ] == []


UNUSED: Final = {"heat": "heat-of-the-form"}
"""Names of pages that their commands have used in this installation -> unused ones."""


@pytest.mark.parametrize("heading", STEPS)
def test_steps_of_a_page_lead_to_their_end(hands: Hands, words: dict[str, str], heading: str) -> None:
    start, end = STEPS[heading]
    hands.page.goto(here(start, words))
    hands.follow([(control, UNUSED.get(typed, typed)) for control, typed in instructions(heading)])
    expect(hands.page.locator("main")).to_contain_text(end)
