"""The link of an experiment: units, errors at fields, sweeps of all."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.specification import parse
from experiments.specification.design import expand, link_of
from experiments.specification.parameters import LINK_PARAMETERS, Link, shown
from tests.experiments.specifications import errors_of
from tests.words import plain


def link(**fields: Any) -> Link:
    """Return a link of written fields."""
    return Link.model_validate(fields)


def test_values_are_read_with_their_units_and_shown_with_them() -> None:
    asked = link(
        topology="two sites",
        bandwidth="300 Mbit/s",
        delay="4 ms",
        jitter="200 us",
        distribution="normal",
        loss="0.1 %",
        loss_burst=3,
        mtu=9000,
        queue="1 MiB",
        rates="1000 Mbit/s;100Mbit/s",
        congestion_control="reno",
        tcp_buffer="256 KiB",
    )
    assert (asked.bandwidth_bps, asked.delay_s, asked.jitter_s, asked.loss) == (3e8, 0.004, 2e-4, 0.001)
    assert (asked.queue_bytes, asked.tcp_buffer_bytes, asked.rates_bps) == (1 << 20, 1 << 18, (1e9, 1e8))
    assert plain(asked.describe()) == (
        "two sites, 300 Mbit/s, ports 1 Gbit/s; 100 Mbit/s, 4 ms delay, 200 us normal jitter, 0.1 % loss in bursts of 3, "
        "MTU 9 000 B, queue 1 MiB, TCP reno, TCP buffers 256 KiB"
    )
    assert shown("link.queue", 3000) == "3000 B"


def test_describe_is_short_for_a_plain_link() -> None:
    assert plain(link().describe()) == "1 Gbit/s, no added delay, no loss, MTU 1 500 B"
    assert link(bandwidth=None).bandwidth_bps is None
    assert link(rates=[1e9, "10 Mbit/s"]).rates == "1 Gbit/s; 10 Mbit/s"


@pytest.mark.parametrize(
    ("asked", "path", "sentence"),
    [
        ({"bandwidth": "0 Mbit/s"}, "link.bandwidth", "greater than 0 bit/s"),
        ({"bandwidth": "fast"}, "link.bandwidth", "not a bandwidth"),
        ({"delay": "-1 ms"}, "link.delay", "greater than or equal to 0"),
        ({"delay": "11 s"}, "link.delay", "less than or equal to 10 s"),
        ({"loss": "100 %"}, "link.loss", "less than 100 %"),
        ({"loss_burst": 0.5}, "link.loss_burst", "greater than or equal to 1"),
        ({"distribution": "cauchy"}, "link.distribution", "'uniform' or 'normal'"),
        ({"topology": "ring"}, "link.topology", "'one site', 'two sites' or 'star'"),
        ({"queue": "100 B"}, "link.queue", "greater than or equal to 2 KiB"),
        ({"rates": "1 Gbit/s; slow"}, "link.rates", "not a bandwidth"),
        ({"rates": "0 bit/s"}, "link.rates", "not a possible rate"),
        ({"congestion_control": "../reno"}, "link.congestion_control", "such as cubic or reno, not '../reno'"),
        ({"tcp_buffer": "1 B"}, "link.tcp_buffer", "greater than or equal to 4 KiB"),
        ({"emulator": "magic"}, "link.emulator", "'auto'"),
        ({"jitter": "5 ms", "delay": "4 ms"}, "link.jitter", "cannot be larger than the delay"),
        ({"queue": "4096 B", "mtu": 9000}, "link.queue", "at least one packet"),
        ({"queue": "1 MiB", "bandwidth": None}, "link.queue", "without a bandwidth"),
        ({"loss": "60 %", "loss_burst": 1.2}, "link.loss_burst", "needs longer bursts"),
        ({"topology": "two sites"}, "link.topology", "at least two hosts"),
        ({"emulator": "wirefilter"}, "link.emulator", "choose relay"),
    ],
)
def test_an_impossible_value_is_refused_at_its_field(asked: dict[str, Any], path: str, sentence: str) -> None:
    errors = errors_of(link=asked, sweep={"steps": [10, 20]}, parameters={"molecules": 64})
    assert sentence in " ".join(errors[path])


def test_a_swept_value_is_refused_with_the_same_words() -> None:
    errors = errors_of(sweep={"link.delay": ["1 ms", "11 s"]})
    assert "must be less than or equal to 10 s, not '11 s'" in " ".join(errors["sweep.link.delay"])


VALUES = {
    "link.bandwidth": ["10 Mbit/s", "1 Gbit/s"],
    "link.delay": ["1 ms", "2 ms"],
    "link.jitter": ["0 ms", "0.1 ms"],
    "link.loss": ["0 %", "1 %"],
    "link.mtu": [1500, 9000],
    "link.distribution": ["uniform", "normal"],
    "link.loss_burst": [1, 4],
    "link.queue": ["100 KiB", "1 MiB"],
    "link.topology": ["one site", "star"],
    "link.rates": ["1 Gbit/s; 10 Mbit/s", "1 Gbit/s; 100 Mbit/s"],
    "link.congestion_control": ["reno", "cubic"],
    "link.tcp_buffer": ["64 KiB", "1 MiB"],
    "link.emulator": ["auto", "relay"],
}


@pytest.mark.parametrize("name", LINK_PARAMETERS)
def test_every_parameter_of_the_link_can_be_swept(name: str) -> None:
    constants = {} if name == "link.delay" else {"delay": "1 ms"}
    spec = parse({"name": "link", "workload": "water", "sweep": {name: VALUES[name]}, "link": constants})
    one, other = (link_of(configuration.parameters) for configuration in expand(spec).configurations)
    field = name.removeprefix("link.")
    assert getattr(one, field) != getattr(other, field)
    assert one.model_copy(update={field: None}) == other.model_copy(update={field: None})


@pytest.mark.parametrize("rates", [{"a": 1}, [{"a": 1}], [["1 Gbit/s"]], [None]])
def test_it_refuses_rates_that_are_no_bandwidths(rates: Any) -> None:
    errors = errors_of(link={"rates": rates})
    assert list(errors) == ["link.rates"]
    assert "must be bandwidths" in errors["link.rates"][0]
