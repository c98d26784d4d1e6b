"""Named networks: editing, validation and the map."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from experiments.models import Membership, Network, Project


@pytest.fixture
def maintainer(page: Client, person: Any, library: Project) -> Client:
    library.memberships.filter(user=person).update(role=Membership.Role.MAINTAINER)
    return page


def sent(*rows: tuple[str, str, str]) -> dict[str, list[str]]:
    names, delays, rates = zip(*rows, strict=True)
    return {"name": list(names), "delay": list(delays), "rate": list(rates)}


def test_maintainers_save_the_table_and_leave_rows_without_a_name_out(maintainer: Client) -> None:
    assert "100 Gbit/s Ethernet" in maintainer.get("/networks/").text
    answer = maintainer.post("/networks/", sent(("Ours", "20 us", "40 Gbit/s"), ("", "1 ms", "1 Gbit/s")))
    assert answer.status_code == 302
    assert list(Network.objects.values_list("name", "delay_s", "rate_bps")) == [("Ours", 20e-6, 40e9)]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (("Ours", "soon", "1 Gbit/s"), "write for example"),
        (("Ours", "-1 ms", "1 Gbit/s"), "The delay must be"),
        (("Ours", "1 ms", "0 bit/s"), "The rate must be"),
        (("ALIKE", "1 ms", "1 Gbit/s"), "The name is used twice"),
    ],
)
def test_invalid_network_is_refused_and_none_is_saved(maintainer: Client, row: tuple[str, str, str], why: str) -> None:
    answer = maintainer.post("/networks/", sent(("Alike", "1 ms", "1 Gbit/s"), row))
    assert answer.status_code == 422
    assert why in answer.text
    assert Network.objects.count() == 6
