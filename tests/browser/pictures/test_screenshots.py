"""script/screenshots has every main page, and makes documents' pictures."""

from __future__ import annotations

import re

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
    linked = {address.partition("#")[0] for address in bar.xpath(".//a/@href")} - {reverse("admin:index")}
    assert len(linked) > 10
    assert linked <= {page.address.partition("?")[0] for page in PAGES}
    assert len({page.name for page in PAGES}) == len(PAGES)


def test_documents_show_the_pictures_that_it_makes() -> None:
    pictures = {}
    for document in DOCUMENTS:
        for words, target in re.findall(r"!\[(.*?)\]\(([^)]+)\)", document.read_text()):
            assert len(words) > 20, f"{document.name}: {target} needs words for who does not see it"
            pictures[(document.parent / target).resolve()] = document.name
    made = {GUIDES / f"{picture.name}.webp" for page in PAGES for picture in page.pictures}
    assert set(pictures) == made == set(GUIDES.iterdir())
    assert 8 <= len(made) <= 14
    assert {file.name: size for file in made if (size := file.stat().st_size) > MOST_BYTES} == {}
