"""The operating envelope: the published rule on full and partial data."""

import pytest

from analysis.conclusions.observations.envelope import Load, envelope

# Study monarc-1999-readers as printed: (link, jobs) -> wall time in s, and the largest uses.
PUBLISHED = {
    1e9: [
        Load(1, [60.0]),
        Load(5, uses={"client CPU": 1.0}),
        Load(10, [360.0]),
        Load(20, uses={"link": 37e6 / 1e9}),
        Load(50, uses={"server CPU": 1.0}),
    ],
    1e8: [
        Load(1, [48.0]),
        Load(10, [150.0]),
        Load(30, uses={"client CPU": 0.6, "link": 80e6 / 1e8}),
        Load(60, uses={"client CPU": 0.2, "server CPU": 1.0}),
    ],
    1e7: [
        Load(1, [200.0]),
        Load(10, [1000.0]),
        Load(20, uses={"client CPU": 0.8, "link": 9e6 / 1e7}),
        Load(60, uses={"server CPU": 0.3}),
    ],
    2e6: [
        Load(1, [1000.0], uses={"server CPU": 0.1}),
        Load(10, [6000.0]),
        Load(20, uses={"client CPU": 0.05, "server CPU": 0.1, "link": 1.7e6 / 2e6}),
    ],
}


def test_it_accepts_the_published_table_at_ten_jobs_on_every_link():
    published = envelope(PUBLISHED)
    assert [row.capacity for row in published.rows] == [2e6, 1e7, 1e8, 1e9]
    assert [row.largest_acceptable for row in published.rows] == [10, 10, 10, 10]
    assert [round(dict(row.ratios)[10], 3) for row in published.rows] == [6.0, 5.0, 3.125, 6.0]
    assert published.smallest_acceptable(10) == 2e6


def test_it_moves_the_published_bottleneck_from_client_to_server_to_link():
    named = {row.capacity: row.saturation for row in envelope(PUBLISHED).rows}
    assert {c: s.resource for c, s in named.items()} == {
        1e9: "client CPU",
        1e8: "server CPU",
        1e7: "link",
        2e6: "link",
    }
    assert all(s.saturated for s in named.values())
    assert named[1e9].jobs == 5


def test_it_says_so_beyond_the_measured_jobs():
    row = envelope(PUBLISHED).rows[1]
    assert (row.first_refused, row.extrapolated) == (None, True)
    assert row.limit == pytest.approx(1 + 9 * 9 / 4)


def test_it_interpolates_between_measured_jobs():
    loads = {1e7: [Load(1, [1.0, 1.2, 1.1]), Load(8, [8.0]), Load(16, [17.6])]}
    row = envelope(loads).rows[0]
    assert row.single_s == 1.1
    assert (row.largest_acceptable, row.first_refused, row.extrapolated) == (8, 16, False)
    assert row.limit == pytest.approx(8 + 8 * (10 - 8 / 1.1) / (16 - 8 / 1.1))


def test_it_does_not_count_a_lucky_trial_beyond_a_refused_load():
    loads = {1.0: [Load(1, [1.0]), Load(5, [12.0]), Load(10, [9.0])]}
    row = envelope(loads).rows[0]
    assert (row.largest_acceptable, row.first_refused) == (1, 5)


def test_it_knows_no_ratio_without_a_single_job():
    row = envelope({1.0: [Load(5, [1.0], {"link": 0.4})]}).rows[0]
    assert (row.ratios, row.largest_acceptable, row.limit) == ((), None, None)
    assert (row.saturation.resource, row.saturation.saturated) == ("link", False)


def test_it_adds_shares_of_the_same_processors():
    loads = {1e9: [Load(10, [1.0], {"client CPU": 0.5, "server CPU": 0.46, "link": 0.3})]}
    apart = envelope(loads).rows[0].saturation
    assert (apart.resource, apart.saturated) == ("client CPU", False)
    row = envelope(loads, shared=("client CPU", "server CPU"), shared_name="processors").rows[0]
    assert row.saturation.resource == "processors, most of it client CPU"
    assert row.saturation.saturated
    assert ("client CPU", 10, 0.5) in row.uses


@pytest.mark.parametrize(
    ("resource", "use", "full"), [("link", 0.86, True), ("server CPU", 0.9, False), ("server CPU", 0.96, True)]
)
def test_a_link_is_full_by_contents_alone_and_a_processor_only_when_it_is(resource, use, full):
    row = envelope({1e8: [Load(10, [1.0], {resource: use})]}).rows[0]
    assert row.saturation.saturated is full


def test_it_refuses_a_factor_of_one():
    with pytest.raises(ValueError, match="above 1"):
        envelope({}, factor=1)
