"""Published results: loaded once, exact, and never changed."""

from __future__ import annotations

import pytest

from experiments.errors import ReadOnly
from experiments.library import load_published
from experiments.metrics import HEADLINE
from experiments.models import Experiment, State, Trial
from experiments.selectors import configuration_rows
from experiments.spec import design
from tests.experiments.specifications import specification

pytestmark = pytest.mark.django_db

HOSTS = (2, 4, 6, 8, 10, 12)
TABLE_A = {  # Guster, Sultanov, Nordby, Slattery (2007), as printed
    "cpu_mean_rank_s": (141.84, 91.06, 67.06, 59.58, 50.70, 50.22),
    "elapsed_s": (245.99, 200.4, 227.58, 263.91, 259.14, 264.85),
    "packets": (201361, 191377, 470706, 469598, 602578, 603034),
    "interarrival_mean_s": (0.00122, 0.00104, 0.000483, 0.000562, 0.000430, 0.000439),
    "throughput_Bps": (575668, 707134, 1265710, 1090568, 1396049, 1337841),
    "packet_intensity_pps": (817.64, 960.42, 2069.78, 1771.63, 2327.71, 2231.22),
}


def water() -> Experiment:
    load_published()
    return Experiment.objects.get(slug="guster-2007-water")


def test_it_holds_every_number_of_the_table_of_2007() -> None:
    rows = configuration_rows(water(), HEADLINE)
    assert tuple(row.hosts for row in rows) == HOSTS
    assert {metric: tuple(row.values[metric][0] for row in rows) for metric in HEADLINE} == TABLE_A
    assert all(len(values) == 1 for row in rows for values in row.values.values())
    assert {(row.ranks, row.parameters["ranks_per_host"]) for row in rows} == {(2 * hosts, 2) for hosts in HOSTS}


def test_it_names_its_source_and_its_inconsistencies() -> None:
    experiment = water()
    assert experiment.published
    assert experiment.source["year"] == 2007
    assert experiment.source["authors"] == "Guster, Sultanov, Nordby, Slattery"
    assert any("2278" in note for note in experiment.source["notes"])


def test_it_is_loaded_once_and_kept_as_it_is() -> None:
    assert load_published() > 0
    keys = list(Trial.objects.order_by("pk").values_list("pk", flat=True))
    assert load_published() == 0
    assert list(Trial.objects.order_by("pk").values_list("pk", flat=True)) == keys


def test_it_is_loaded_again_when_the_file_has_changed() -> None:
    experiment = water()
    Experiment.objects.filter(pk=experiment.pk).update(specification_hash="of an older file")
    assert load_published() == 1
    again = Experiment.objects.get(slug=experiment.slug)
    assert again.pk != experiment.pk
    assert again.trials.count() == len(HOSTS)


def test_it_is_finished_and_cannot_be_changed() -> None:
    experiment = water()
    assert set(experiment.trials.values_list("state", flat=True)) == {State.FINISHED}
    with pytest.raises(ReadOnly, match="clone it"):
        experiment.cancel()
    with pytest.raises(ReadOnly):
        experiment.add_design(design.expand(specification()))
