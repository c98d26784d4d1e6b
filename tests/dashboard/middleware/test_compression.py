"""Compression of pages."""

from __future__ import annotations

import gzip

import pytest
from django.test import Client

from tests.experiments import factories

GZIP = {"accept-encoding": "gzip"}


@pytest.fixture
def client(db) -> Client:
    client = Client()
    client.force_login(factories.person("ada", "maintainer"))
    return client


def test_pages_are_compressed_for_browsers_that_accept_it(client):
    plain, answer = client.get("/experiments/"), client.get("/experiments/", headers=GZIP)
    assert (plain.get("Content-Encoding"), answer["Content-Encoding"]) == (None, "gzip")
    assert "<h1" in gzip.decompress(answer.content).decode()
    assert len(answer.content) < len(plain.content) / 2
    assert int(answer["Content-Length"]) == len(answer.content)
    assert "Accept-Encoding" in answer["Vary"]


@pytest.mark.parametrize("address", ["/account/", "/account/second-factor/", "/api/v1/experiments/"])
def test_answers_that_may_hold_secrets_are_not_compressed(client, address):
    answer = client.get(address, headers=GZIP)
    assert answer.status_code == 200
    assert not answer.has_header("Content-Encoding")


def test_the_page_that_shows_a_new_share_link_is_not_compressed(client):
    experiment = factories.experiment()
    answer = client.post(f"/experiments/{experiment.slug}/share/", {"days": 7}, headers=GZIP)
    assert answer.status_code == 200
    assert "/shared/" in answer.content.decode()
