"""script/screenshots: its list has every main page, documents show pictures that it makes, and it takes pages in four forms."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from lxml import html

from config.services.lease import ROOT
from tests.browser.pictures.__main__ import GUIDES
from tests.browser.pictures.camera import MOST_BYTES
from tests.browser.pictures.pages import PAGES

DOCUMENTS = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]


def test_its_list_has_every_page_of_the_bar(client: Client, person) -> None:
    client.force_login(person)
    bar = html.fromstring(client.get("/").content.decode()).xpath("//header[contains(@class, 'bezel')]")[0]
    linked = set(bar.xpath(".//a/@href")) - {reverse("admin:index")}
    assert len(linked) > 10
    assert linked <= {page.address.partition("?")[0] for page in PAGES}
    assert len({page.name for page in PAGES}) == len(PAGES)


def test_documents_show_the_pictures_that_it_makes() -> None:
    shown = {}
    for document in DOCUMENTS:
        for words, target in re.findall(r"!\[(.*?)\]\(([^)]+)\)", document.read_text()):
            assert len(words) > 20, f"{document.name}: {target} needs words for who does not see it"
            shown[(document.parent / target).resolve()] = document.name
    made = {GUIDES / f"{picture.name}.webp" for page in PAGES for picture in page.pictures}
    assert set(shown) == made == set(GUIDES.iterdir())
    assert 8 <= len(made) <= 14
    assert {file.name: size for file in made if (size := file.stat().st_size) > MOST_BYTES} == {}


@pytest.mark.timeout(300)
def test_it_takes_pages_light_and_dark_wide_and_narrow(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    # Style sheets as they lie in the sources, not as they were gathered last.
    run = subprocess.run(
        [sys.executable, "-m", "tests.browser.pictures", "sign-in", "published", "--to", str(tmp_path)],
        cwd=ROOT,
        env={**kept, "RANKWIRE_DEBUG": "1", "RANKWIRE_WEB_PROCESSES": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    forms = [f"{scheme}-{width}" for width in (1440, 390) for scheme in ("light", "dark")]
    taken = {f"{page}-{form}.png" for page in ("published", "sign-in") for form in forms}
    assert {file.name for file in tmp_path.glob("*.png")} == taken
    for name in taken:
        width, height = struct.unpack(">II", (tmp_path / name).read_bytes()[16:24])
        assert (width, height >= 800) == (int(name.rpartition("-")[2].removesuffix(".png")), True), name
    assert (tmp_path / "published-light-1440.png").read_bytes() != (tmp_path / "published-dark-1440.png").read_bytes()
    sheet = (tmp_path / "index.html").read_text()
    assert all(f'src="{name}"' in sheet for name in taken)
