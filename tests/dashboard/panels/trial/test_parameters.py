"""The parameters of a trial in its Environment tab, each with the unit that its workload names."""

from __future__ import annotations

import pytest

from tests.dashboard.reader import Reader
from tests.experiments import factories
from tests.words import words_of


@pytest.mark.django_db
def test_a_temperature_stands_with_its_kelvin() -> None:
    factories.experiment()
    trial = factories.finished()
    page = Reader()
    page.force_login(factories.person("admin", is_superuser=True))
    said = words_of(page.get(f"{trial.get_absolute_url()}?tab=environment"))
    assert "Temperature 300 K" in said.replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert "Molecules 64 " in said
