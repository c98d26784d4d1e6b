"""A requeued trial states the end of its job on its page and in lists."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from lxml import html

from experiments.models import Cluster, Experiment, Trial

WHY = "Queued again, no attempt lost: Slurm job 17 on n01 ended: CANCELLED."


@pytest.fixture
def trial(submit: Callable[..., Experiment]) -> Trial:
    submit(sweep={"hosts": [2]}, repetitions=2)
    taken = claimed()
    taken.start_running(command=["mpirun"], conditions={})
    assert taken.requeue(WHY)
    return taken


def claimed() -> Trial:
    taken = Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    assert taken is not None
    return taken


def said(page: Client, address: str, where: str) -> list[str]:
    found = html.fromstring(page.get(address).content.decode()).xpath(where)
    return [" ".join(str(each if isinstance(each, str) else each.text_content()).split()) for each in found]


def test_its_page_says_why_until_it_is_taken_again(page: Client, trial: Trial) -> None:
    live = reverse("trial-live", args=[trial.pk])
    for address in (trial.get_absolute_url(), live):
        assert said(page, address, "//*[@id='live']/p[contains(@class, 'note')]") == [WHY]
    assert claimed().pk == trial.pk
    assert WHY not in page.get(live).content.decode()
