"""Result parts appear only if the data fit, with the right contents."""

import pytest
from django.urls import reverse

from dashboard.panels.parts import Measured
from dashboard.panels.parts.phases import phases_part
from dashboard.panels.parts.rating import rating_part
from experiments.models import Experiment, Measurement
from tests.dashboard.studies_measured import FACTORS, LADDER, READERS, STAGING, measured, read, solve, stage
from tests.dashboard.texts import words_of
from tests.words import plain


def test_it_shows_an_envelope_with_the_published_one(page, library):
    words = words_of(page, measured(library, READERS, read))
    assert "Operating envelope" in words
    assert "10 Mbit/s 1 s 1 10 10 link: 94 % at 1" in words, "ten times as long at ten jobs is not acceptable"
    assert "Published about 1999" in words
    assert "2 Mbit/s 1 000 s 10 none 17 not measured link: 85 % at 20" in words
    assert "processors, most of it server CPU: 100 % at 20" in words, "virtual hosts share their machine"


def test_it_takes_another_factor_from_the_address(page, library):
    experiment = measured(library, READERS, read)
    for text, factor in (("5", 5), ("nan", 10)):
        response = page.get(reverse("experiment-parts", args=[experiment.slug]), {"factor": text})
        assert response.context["opening"].context["factor"] == factor


def test_it_shows_the_published_readers_with_the_published_limits(page):
    words = words_of(page, Experiment.objects.get(slug="monarc-1999-readers"))
    assert "1 Gbit/s 60 s 10 none 17 not measured client CPU: 100 % at 5" in words
    assert "100 Mbit/s 48 s 10 none 39 not measured server CPU: 100 % at 60" in words
    assert "10 jobs: 2 Mbit/s" in words


def test_it_shows_a_ladder_with_what_changed(page, library):
    words = words_of(page, measured(library, LADDER, solve))
    assert "Tuning ladder" in words
    assert "2 Ns 1 000 → 2 000 2 2 2" in words
    assert "3 Nb 80 → 160 3 1.5 3" in words
    assert "Single and combined effects" in words
    assert "Unknown of the cluster Virtual test-bed: hosts, clock, operations per cycle, price, power" in words


def test_it_does_not_call_parts_of_a_grid_a_ladder(page):
    words = words_of(page, Experiment.objects.get(slug="pinning-2007-wan"))
    assert "Tuning ladder" not in words
    assert "Single and combined effects" not in words


def test_it_shows_every_combination_as_effects_and_no_ladder(page, library):
    words = words_of(page, measured(library, FACTORS, solve))
    assert "Tuning ladder" not in words
    assert "Nb 80 → 160 1.5 1.5 to 1.5 2" in words
    assert "Nb 80 → 160 and Ns 1 000 → 2 000 3 3 1" in words


def test_it_marks_changes_that_need_each_other_as_dependent(page, library):
    def needs_both(parameters):
        both = parameters["ns"] == 2000 and parameters["nb"] == 160
        return {"elapsed_s": 5.0, "hpl.gflops": 3.0 if both else 1.0}

    words = words_of(page, measured(library, FACTORS, needs_both))
    assert "Nb 80 → 160 and Ns 1 000 → 2 000 dependent 3 1 3" in words


def test_it_rates_the_published_tests_as_printed(page):
    words = words_of(page, Experiment.objects.get(slug="eadline-2006-hpl"))
    assert "theoretical peak 28.1 GFLOP/s" in words
    assert "Price $ per GFLOP/s Later price $ per GFLOP/s" in words
    assert "14.53 51.7 171.4 142 16.14" in words
    assert "Tuning ladder" in words


def test_it_gives_the_published_share_of_peak_to_the_printed_digit(page):
    study = Experiment.objects.get(slug="eadline-2006-hpl")
    (table,) = rating_part(Measured.of(study), {})["tables"]
    printed = Measurement.objects.filter(trial__experiment=study, metric="peak_percent").order_by("trial__position")
    for row, rounded in zip(table["rows"], printed, strict=True):
        assert abs(float(row["peak"]) - rounded.value) <= 0.5, "printed without decimals"
    assert len(printed) == 8


def test_it_shows_a_measured_rate_with_the_published_ones(page, library):
    words = words_of(page, measured(library, LADDER, solve))
    assert words.index("Against peak, price and power Measured") < words.index("14.53 51.7 171.4 142 16.14")


def test_it_compares_the_rate_with_known_facts(page, library):
    experiment = measured(library, LADDER, solve)
    cluster = experiment.cluster
    cluster.facts = {
        "hosts": 2,
        "cores_per_host": 1,
        "clock_hz": 1e9,
        "operations_per_cycle": 4,
        "price": 1200,
        "watts": 300,
    }
    cluster.save()
    words = words_of(page, experiment)
    assert "theoretical peak 8 GFLOP/s" in words
    assert "3 37.5 400 10" in words
    assert "Unknown" not in words


def test_it_rates_by_measured_power_and_says_so(page, library):
    def metered(parameters):
        return {**solve(parameters), "power_mean_w": 150.0} if parameters["nb"] == 160 else solve(parameters)

    experiment = measured(library, LADDER, metered)
    experiment.cluster.facts = {"hosts": 2, "watts": 300}
    experiment.cluster.save()
    (table,) = rating_part(Measured.alone(experiment), {})["tables"]
    assert [(row["gflops"], row["power"], row["power_from"]) for row in table["rows"]] == [
        *(("1", "3.333", "stated"), ("2", "6.667", "stated"), ("3", "20", "measured"))
    ]
    assert "Rate per power MFLOP/s/W" in words_of(page, experiment)


def test_it_shows_files_of_staging_by_rank(page, library):
    def with_files(parameters):
        ranks = parameters["hosts"]
        return {
            **stage(parameters),
            "io_requested_read_bytes": 2e6 * ranks,
            "io_wait_s": 0.5 * ranks,
            "nfs_wait_s": 3.0,
        }

    files = phases_part(Measured.alone(measured(library, STAGING, with_files)), {})["measured"]["files"]
    assert [metric for _, metric in files["columns"]] == ["io_requested_read_bytes", "io_wait_s", "nfs_wait_s"]
    assert {tuple(map(plain, row["cells"])) for row in files["rows"]} == {("2 MB", "500 ms", "3 s")}
    assert phases_part(Measured.alone(measured(library, STAGING, stage)), {})["measured"]["files"] is None


def test_it_shows_phases_with_gains_equations_and_the_extrapolation(page, library):
    words = words_of(page, measured(library, STAGING, stage))
    assert "6 multicast 48 +400 % 42.9 3.86 74.1" in words, "0.7 s against 2.7 s on six nodes"
    assert "6 pull 9.6 – 11.1 – –" in words
    assert "multicast 0.5 constant" in words
    assert "0.1 + 0.4 N linear" in words
    assert "beyond measured nodes and searches" in words
    inside = words_of(page, measured(library, STAGING, stage), nodes="5", steps="2")
    assert "beyond measured" not in inside
    assert "pull 2.1 s" in inside


PRINTED_GAINS = (
    "10 broadcast +589 % 4.4 77.3 kind: measured; nodes: 10, 100 Mb/s each; server: gigabit; data set: 568 MB"
)


def test_it_shows_printed_and_measured_gains_with_their_conditions(page, library):
    words = words_of(page, measured(library, STAGING, stage))
    assert words.index("6 multicast") < words.index(PRINTED_GAINS)
    assert "100 broadcast – 30 96.7 kind: estimated; search: 48 h; data set: 500 MB" in words


def test_it_shows_only_gains_of_a_study_that_prints_no_times(page):
    words = words_of(page, Experiment.objects.get(slug="york-staging"))
    assert PRINTED_GAINS in words
    assert "Equations" not in words


def test_it_says_what_waiting_costs_where_prices_are_known(page, library):
    experiment = measured(library, STAGING, stage)
    assert "Price lost" not in words_of(page, experiment)
    experiment.cluster.describe({"hosts": 7, "price_per_host_hour": 1.35, "currency": "€"})
    words = words_of(page, experiment)
    assert "Price lost € per hour" in words
    assert "6 multicast 48 +400 % 42.9 3.86 74.1 6" in words, "6 hosts x 2.0 s of 2.7 s x 1.35 an hour"


@pytest.mark.parametrize("target", [{"nodes": "0"}, {"nodes": "-1"}, {"steps": "9" * 40}, {"nodes": "x"}])
def test_it_ignores_an_impossible_target(page, library, target):
    words = words_of(page, measured(library, STAGING, stage), **target)
    assert "beyond measured nodes and searches" in words


def test_it_adds_no_part_to_a_sweep_of_hosts(page, submit, run):
    experiment = submit()
    run()
    assert words_of(page, experiment) == ""


def test_it_adds_no_part_to_an_experiment_without_results(page, library):
    from experiments.specification import parse

    for specification in (READERS, STAGING, LADDER):
        experiment = Experiment.submit(parse(dict(specification)), project=library, owner=None)
        assert words_of(page, experiment) == ""


def test_it_does_not_find_what_one_may_not_see(client, library, django_user_model):
    experiment = measured(library, LADDER, solve)
    client.force_login(django_user_model.objects.create_user("stranger"))
    assert client.get(reverse("experiment-parts", args=[experiment.slug])).status_code == 404
