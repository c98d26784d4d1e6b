"""Texts of pages."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from django.test import Client
from django.urls import reverse

from experiments.models import Experiment


def text_of(response: Any) -> str:
    """The page itself, which must be one."""
    assert response.status_code == 200
    text: str = response.content.decode()
    return text


def words_of(page: Client, experiment: Experiment, **asked: str) -> str:
    """The text of an experiment's parts, without markup."""
    return plain_text(text_of(page.get(reverse("experiment-parts", args=[experiment.slug]), asked)))


def plain_text(markup: str) -> str:
    """A page without markup and scripts."""
    return " ".join(re.sub(r"<script.*?</script>|<[^>]+>", " ", markup, flags=re.DOTALL).split())


def undo_of(html: str) -> tuple[str, dict[str, str]]:
    """Return the address and the fields of the form *Undo* in a message."""
    form = next(part for part in html.split("<form")[1:] if ">Undo</button>" in part.partition("</form>")[0])
    address = re.search(r'action="([^"]+)"', form)
    assert address
    fields = re.findall(r'name="([^"]+)"\s+value="([^"]*)"', form.partition("</form>")[0])
    return address[1], {name: unescape(value) for name, value in fields}
