"""Tables of published studies, typed a second time, against the library."""

import pytest
from pydantic import ValidationError

from experiments.library import load_published
from experiments.library.studies import Point, PublishedStudy, published_studies
from experiments.metrics import find, is_metric
from experiments.models import Trial
from experiments.specification.design import configuration_hash

STUDIES = {study.slug: study for study in published_studies()}
MIB = 2**20

WATER = """
hosts                 | 2       | 4       | 6       | 8       | 10      | 12
cpu_mean_rank_s       | 141.84  | 91.06   | 67.06   | 59.58   | 50.70   | 50.22
elapsed_s             | 245.99  | 200.4   | 227.58  | 263.91  | 259.14  | 264.85
packets               | 201361  | 191377  | 470706  | 469598  | 602578  | 603034
interarrival_mean_s   | .00122  | .00104  | .000483 | .000562 | .000430 | .000439
throughput_Bps        | 575668  | 707134  | 1265710 | 1090568 | 1396049 | 1337841
packet_intensity_pps  | 817.64  | 960.42  | 2069.78 | 1771.63 | 2327.71 | 2231.22
"""
LOSS = """
loss % | 0 ms  | 2 ms  | 4 ms   | 8 ms   | 16 ms  | message
0.0    | 0.703 | 0.860 | 0.971  | 1.242  | 1.789  | 4 MB
0.01   | 0.743 | 0.889 | 1.043  | 1.318  | 1.863  | 4 MB
0.1    | 0.927 | 1.106 | 1.279  | 1.592  | 2.288  | 4 MB
1.0    | 1.997 | 2.415 | 2.799  | 3.489  | 4.956  | 4 MB
0.0    | 2.618 | 3.182 | 3.590  | 4.630  | 6.576  | 16 MB
0.01   | 2.777 | 3.260 | 3.777  | 4.760  | 6.682  | 16 MB
0.1    | 3.449 | 4.002 | 4.691  | 5.774  | 8.229  | 16 MB
1.0    | 7.760 | 9.248 | 10.592 | 13.694 | 19.427 | 16 MB
"""
JITTER = """
jitter ms | 2 ms  | 4 ms  | 8 ms  | 16 ms | message
0.2       | 0.910 | 1.027 | 1.372 | 1.881 | 4 MB
0.4       | 0.922 | 1.071 | 1.379 | 1.928 | 4 MB
0.8       | 0.940 | 1.117 | 1.416 | 1.872 | 4 MB
0.2       | 3.266 | 3.810 | 4.577 | 6.329 | 16 MB
0.4       | 3.464 | 3.940 | 4.879 | 6.977 | 16 MB
0.8       | 3.649 | 4.029 | 4.947 | 7.165 | 16 MB
"""
HPL = """
test | ns    | nb  | p | q | blas  | mtu  | mbps | % of peak | GFLOP/s
1    | 34    | 4   | 1 | 8 | ATLAS | 1500 | 1000 | 0         | .0084
2    | 10000 | 144 | 1 | 8 | ATLAS | 1500 | 1000 | 38        | 10.6
3    | 11500 | 240 | 1 | 8 | ATLAS | 1500 | 1000 | 41        | 11.51
4    | 11500 | 240 | 2 | 4 | ATLAS | 1500 | 1000 | 45        | 12.74
5    | 11500 | 240 | 2 | 4 | ATLAS | 1500 | 1000 | 47        | 13.26
6    | 11500 | 240 | 2 | 4 | ACML  | 1500 | 1000 | 41        | 11.45
7    | 12300 | 180 | 2 | 4 | ATLAS | 6000 | 1000 | 52        | 14.53
8    | 12300 | 180 | 2 | 4 | ATLAS | 1500 | 100  | 27        | 7.45
"""


def cells(table):
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


def values_of(slug, metric, *names):
    """Return the values of a metric by the values of the named parameters."""
    points = STUDIES[slug].points()
    return {tuple(p.parameters[n] for n in names): p.values[metric] for p in points if metric in p.values}


def test_it_holds_water_as_printed():
    (_, *hosts), *rows = cells(WATER)
    for metric, *values in rows:
        expected = {(int(n),): float(value) for n, value in zip(hosts, values, strict=True)}
        assert values_of("guster-2007-water", metric, "hosts") == expected


def test_water_keeps_its_inconsistent_digits():
    last = STUDIES["guster-2007-water"].points()[-1].values
    assert round(1 / last["interarrival_mean_s"]) == 2278 != round(last["packet_intensity_pps"]) == 2231
    assert any("2278" in note and "2231" in note for note in STUDIES["guster-2007-water"].notes)


def transfer_times(table, share):
    (_, *delays, _), *rows = cells(table)
    sizes = {"4 MB": 4 * MIB, "16 MB": 16 * MIB}
    return {
        (sizes[message], float(cell) / share, int(delay.removesuffix(" ms")) / 1000): float(value)
        for cell, *values, message in rows
        for delay, value in zip(delays, values, strict=True)
    }


def test_it_holds_transfer_times_as_printed():
    metric = "pingpong.transfer_time_s"
    times = values_of("pinning-2007-wan", metric, "message_bytes", "link.loss", "link.jitter", "link.delay")
    with_loss = {(size, loss, delay): t for (size, loss, jitter, delay), t in times.items() if not jitter}
    with_jitter = {(size, jitter, delay): t for (size, loss, jitter, delay), t in times.items() if jitter}
    assert with_loss == pytest.approx(transfer_times(LOSS, 100))
    assert with_jitter == pytest.approx(transfer_times(JITTER, 1000))
    assert len(times) == 40 + 24


def readers(metric):
    values = values_of("monarc-1999-readers", f"concurrent-readers.{metric}", "link.bandwidth", "jobs")
    return {(bandwidth / 1e6, jobs): value for (bandwidth, jobs), value in values.items()}


def test_it_holds_readers_as_printed():
    assert readers("client_cpu_max_share") == {
        (1000, 5): 1.0,
        (100, 30): 0.6,
        (100, 60): 0.2,
        (10, 20): 0.8,
        (2, 20): 0.05,
    }
    assert readers("server_cpu_max_share") == {
        (1000, 50): 1.0,
        (100, 60): 1.0,
        (10, 60): 0.3,
        (2, 1): 0.1,
        (2, 20): 0.1,
    }
    assert readers("server_throughput_bps") == {(1000, 20): 37e6, (100, 30): 80e6, (10, 20): 9e6, (2, 20): 1.7e6}
    single, at_ten = {1000: 60, 100: 48, 10: 200, 2: 1000}, {1000: 360, 100: 150, 10: 1000, 2: 6000}
    printed = {(link, jobs): wall[link] for jobs, wall in ((1, single), (10, at_ten)) for link in wall}
    assert readers("job_wall_s") == printed


def test_it_holds_readers_ranges_as_conditions():
    points = STUDIES["monarc-1999-readers"].points()
    printed = {words for p in points for table in p.conditions.values() for words in table.values()}
    assert {"100 % at >= 5 jobs", "10 % (constant) at 1-20 jobs", "at <= 30 jobs"} <= printed
    assert all(point.hosts == point.ranks == 0 for point in points), "the publication prints no host count"


def test_it_holds_hpl_as_printed():
    names = ("test", "ns", "nb", "p", "q", "blas", "link.mtu", "link.bandwidth")
    rates = values_of("eadline-2006-hpl", "hpl.gflops", *names)
    peaks = values_of("eadline-2006-hpl", "peak_percent", *names)
    _, *rows = cells(HPL)
    keys = [(*map(int, row[:5]), row[5], int(row[6]), float(row[7]) * 1e6) for row in rows]
    assert rates == {key: float(row[9]) for key, row in zip(keys, rows, strict=True)}
    assert peaks == {key: float(row[8]) for key, row in zip(keys, rows, strict=True)}


def test_it_holds_hpls_economics_as_they_follow():
    prices = {
        p.parameters["prices"]: p.values for p in STUDIES["eadline-2006-hpl"].points() if "prices" in p.parameters
    }
    best = max(values_of("eadline-2006-hpl", "hpl.gflops", "test").values())
    then, later = prices["at construction"], prices["later"]
    assert round(then["price_usd"] / best) == then["price_per_gflops_usd"] == 171
    assert round(later["price_usd"] / best) == later["price_per_gflops_usd"] == 142
    assert round(1000 * best / then["power_w"], 2) == then["mflops_per_watt"] == 16.14
    assert (then["price_usd"], later["price_usd"], then["power_w"]) == (2490, 2063, 900)


def test_it_holds_netpipes_latencies_in_seconds():
    assert values_of("eadline-2006-hpl", "netpipe.latency_s", "ethernet") == {
        ("GigE defaults",): 117e-6,
        ("GigE, interrupt throttle 0",): 29e-6,
        ("Fast Ethernet defaults",): 42e-6,
    }


def test_it_holds_staging_with_its_conditions():
    measured, estimated = STUDIES["york-staging"].points()
    assert measured.values == {"data-staging.speedup": 4.4, "data-staging.aggregate_bandwidth_gain_percent": 589}
    assert (measured.hosts, measured.parameters["dataset_bytes"]) == (10, 568_000_000)
    (conditions,) = measured.conditions.values()
    assert conditions["kind"] == "measured"
    assert estimated.values == {"data-staging.speedup": 30}
    assert (estimated.hosts, estimated.parameters["search_s"]) == (100, 48 * 3600)
    (conditions,) = estimated.conditions.values()
    assert conditions["kind"] == "estimated"
    assert any("9 times" in statement for statement in STUDIES["york-staging"].statements)


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_it_names_every_value_by_a_known_metric(study):
    for point in study.points():
        assert isinstance(point, Point)
        for metric in point.values:
            assert find(metric).unit
            assert find(metric).definition
        assert point.hash == configuration_hash(study.workload, point.parameters)


@pytest.mark.django_db
def test_it_stores_all_points_once_with_their_conditions():
    assert load_published() == len(STUDIES)
    assert load_published() == 0
    for study in STUDIES.values():
        trials = Trial.objects.filter(experiment__slug=study.slug, experiment__published=True).order_by("position")
        for trial, point in zip(trials, study.points(), strict=True):
            configuration = trial.configuration
            assert (configuration.parameters, configuration.hosts, trial.conditions) == (
                point.parameters,
                point.hosts,
                point.conditions,
            )
            assert dict(trial.measurements.values_list("metric", "value")) == point.values


def test_it_names_every_printed_metric():
    for table in (table for study in STUDIES.values() for table in study.tables):
        printed = {metric for row in table.rows for metric in row.values}
        assert printed == table.printed_as.keys()
        assert all(map(is_metric, printed))


def test_points_refuses_a_line_that_is_given_twice():
    data = STUDIES["eadline-2006-hpl"].model_dump()
    data["tables"][0]["rows"] *= 2
    with pytest.raises(ValueError, match="twice"):
        PublishedStudy.model_validate(data).points()


def test_it_refuses_an_unknown_field():
    with pytest.raises(ValidationError, match="colour"):
        PublishedStudy.model_validate({**STUDIES["york-staging"].model_dump(), "colour": "red"})
