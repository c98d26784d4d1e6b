"""Parameters in words."""

from __future__ import annotations

import pytest

from dashboard.labels import parameter_label, parameters_sentence, telling, value_words
from experiments.specification.parameters import Link


def test_a_command_is_shown_as_one_would_type_it_and_nothing_of_what_is_empty() -> None:
    parameters = {"hosts": 4, "program": ["sleep", "6 s"], "placeholders": {}, "extract": [], "inputs": {}, "seed": 0}
    assert parameters_sentence(parameters, list(parameters)) == "4 hosts, program sleep '6 s', seed 0"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("message_bytes", 4_194_304, "4 MiB"),
        ("link.rates", "", "–"),
        ("dataset_bytes", 568_000_000, "568 MB"),
        ("event_bytes", 40_000, "40 kB"),
        ("page_bytes", 1500, "1\u202f500 B"),
        ("message_bytes", 0, "0 B"),
        ("steps", 10_000, "10\u202f000"),
        ("link.jitter", 0.0002, "200 µs"),
        ("link.delay", 0.0, "0 ms"),
        ("link.bandwidth", 3e8, "300 Mbit/s"),
    ],
)
def test_it_shows_a_parameter_as_people_write_it(name, value, text):
    assert value_words(name, value) == text


def test_it_calls_a_size_one_and_leaves_the_unit_to_the_value():
    assert parameter_label("message_bytes") == "Message size"
    assert parameters_sentence({"hosts": 2, "message_bytes": 65_536}, ["hosts", "message_bytes"]) == (
        "2 hosts, message size 64 KiB"
    )


def test_a_configuration_is_named_by_hosts_and_settings_other_than_defaults() -> None:
    link = {f"link.{name}": field.default for name, field in Link.model_fields.items()}
    reported = {"steps": 8, **link, "link.bandwidth": 1e9, "link.mtu": 4000, "hosts": 2, "note": ""}
    assert parameters_sentence(reported, telling(reported)) == "2 hosts, steps 8, bandwidth 1 Gbit/s, MTU 4\u202f000 B"
    assert value_words("link.loss_burst", 1.0) == "1"
