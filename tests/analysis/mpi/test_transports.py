"""Ways of the messages, from what the ranks' processes held."""

from __future__ import annotations

import pytest

from analysis.mpi.transports import (
    ObservedTransport,
    numbers_of,
    observed_transport,
    place_of,
    places_in_words,
    sentence,
)

SHM = "/dev/shm/"  # noqa: S108 - names of segments alone
OB1 = "/usr/lib/openmpi/mca_pml_ob1.so"
ONE = "tcp 10.0.0.1 20000 10.0.0.2 40000 700"
OTHER = "tcp 10.0.0.2 40000 10.0.0.1 20000 300"
SERVER = "tcp 10.0.0.1 50000 10.0.0.1 21000 9999"
TWO_HOSTS = {0: "a", 1: "b"}


def test_bytes_count_on_connections_between_ranks() -> None:
    assert observed_transport({0: f"{OB1}\n{ONE}\n{SERVER}", 1: f"{OB1}\n{OTHER}"}, TWO_HOSTS) == ObservedTransport(
        1000, (), (), "ob1"
    )


def test_loopback_connections_of_two_hosts_are_not_one() -> None:
    there, back = "tcp 127.0.0.1 1 127.0.0.1 2 5", "tcp 127.0.0.1 2 127.0.0.1 1 6"
    assert observed_transport({0: there, 1: back}, TWO_HOSTS).tcp_bytes == 0
    assert observed_transport({0: there, 1: back}, {0: "a", 1: "a"}).tcp_bytes == 11


@pytest.mark.parametrize(
    ("lines", "shared", "devices"),
    [
        ([f"{SHM}vader_segment.a.0.1.0"], (), ()),
        ([f"{SHM}vader_segment.a.0.1.0", f"{SHM}vader_segment.a.0.1.1"], ("Open MPI",), ()),
        ([f"{SHM}sm_segment.a.0.1.0", f"{SHM}sm_segment.a.0.1.1"], ("Open MPI",), ()),
        (["/SYSV00000000 (deleted)"], ("UCX",), ()),
        (["/dev/infiniband/uverbs0", "/dev/null"], (), ("InfiniBand or RoCE (uverbs0)",)),
        (["/dev/cxi1", "/dev/hfi1_0"], (), ("Slingshot (cxi1)", "Omni-Path (hfi1_0)")),
        (["tcp 10.0.0.1 x", "tcp a b c d e", "nonsense", ""], (), ()),
    ],
)
def test_shared_memory_and_devices_have_names(
    lines: list[str], shared: tuple[str, ...], devices: tuple[str, ...]
) -> None:
    transport = observed_transport({0: "\n".join(lines), 1: ""}, TWO_HOSTS)
    assert transport == ObservedTransport(0, shared, devices, "")


def test_segments_of_open_mpi_are_not_its_ways_under_ucx() -> None:
    text = f"{SHM}vader_segment.a.0.1.0\n{SHM}vader_segment.a.0.1.1\n/x/mca_pml_ucx.so"
    assert observed_transport({0: text}, {0: "a"}) == ObservedTransport(0, (), (), "ucx")


def test_a_missing_report_makes_the_ways_unknown() -> None:
    assert observed_transport({0: ONE}, TWO_HOSTS) is None
    assert observed_transport({}, {}) is None
    assert sentence(None).startswith("unknown")


def test_a_place_has_cpus_numa_socket_core_and_what_was_allowed() -> None:
    ran_on = place_of("placed 4 0 0 2 0-7\ntcp x\nplaced 6 1 1 3 4-7\nran 4,6-7\n")
    assert ran_on["cpus"] == [4, 6, 7]
    ran_on = place_of("placed 4 0 0 2 0-7\ntcp x\nplaced 6 1 1 3 4-7\n")
    assert ran_on == {"cpus": [4, 6], "cpu": 6, "numa": 1, "socket": 1, "core": 3, "allowed": "4-7"} | {
        "allowed_first": "0-7"
    }
    assert "allowed_first" not in place_of("placed 4 0 0 2 0\nplaced 4 0 0 2 0\n")
    for unreadable in ("", "placed 4 0 0 2 0", "placed a 0 0 2 0\nplaced 4 0 0 2 0"):
        assert place_of(unreadable) == {}


def test_hardware_threads_of_a_core_are_one_core() -> None:
    rows = {rank: place_of(f"placed {cpu} 0 0 7 0,4\n" * 2) for rank, cpu in enumerate((0, 4))}
    assert places_in_words(rows, {0: "a", 1: "a"}) == "2 ranks ended on 1 core; each may use 2 CPUs"
    assert places_in_words(rows, TWO_HOSTS) == "2 ranks ended on 2 cores; each may use 2 CPUs"
    assert places_in_words({0: rows[0], 1: {}}, TWO_HOSTS) == ""


def test_lists_of_cpus_are_counted() -> None:
    assert [numbers_of(cpus) for cpus in ("3", "0-3,8", "?", "")] == [[3], [0, 1, 2, 3, 8], [], []]


@pytest.mark.parametrize(
    "text",
    [
        "tcp 10.0.0.1 1 10.0.0.2 2 " + "9" * 5000,
        "tcp 10.0.0.1 1 10.0.0.2 2 " + "٣" * 3,
        "\n".join(["placed " + "9" * 5000 + " 0 0 0 0"] * 2),
        "\n".join("/dev/infiniband/uverbs" + str(number) for number in range(5000)),
    ],
)
def test_forged_reports_are_bounded(text: str) -> None:
    transport = observed_transport({0: text}, {0: "n1"})
    assert len(sentence(transport)) < 400
    assert place_of(text) == {}


@pytest.mark.parametrize("cpus", ["5-0", "0-" + "9" * 400, "٣", "", "1,,2"])
def test_lists_of_cpus_that_the_kernel_does_not_write_count_nothing(cpus: str) -> None:
    assert numbers_of(cpus) == []


def test_ranks_without_a_known_core_have_no_placement() -> None:
    row = {"cpus": [0], "numa": 0, "socket": -1, "core": -1, "allowed": "0-1"}
    assert places_in_words({0: row, 1: row}, {0: "n1", 1: "n1"}) == ""


def test_forged_lists_of_cpus_take_no_memory() -> None:
    many = ",".join(["0-9999"] * 36_000)
    begin = "placed 0 0 0 0 0\n" * 2
    assert place_of(f"{begin}ran {many}")["cpus"] == [0]
    assert place_of(f"placed 0 0 0 0 {many}\n" * 2) == {}
    for forged in (many, "0-3,3", "5,4", "0-3,1-2"):
        assert numbers_of(forged) == []
    assert numbers_of("0,2-3,5-5,9999") == [0, 2, 3, 5, 9999]
