"""REST: series, histograms, connections and matrices of a trial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

import analysis
from experiments.files import ANALYSIS_NAME, MPI_PROFILE_NAME, trial_directory, write_analysis
from experiments.models import Artifact, Trial
from tests.dashboard.api.clients import TRIALS, client_of
from tests.dashboard.panels.trial.samples import row
from tests.experiments import factories

pytestmark = pytest.mark.django_db
CAPTURE = Path(__file__).parents[3] / "analysis/data/open-mpi-5.pcap"
PARTS = ("series", "histograms", "flows", "matrices")


@pytest.fixture
def client() -> Client:
    return client_of(factories.person("ada", "viewer"))


@pytest.fixture(scope="module")
def analysed() -> dict[str, Any]:
    """An analysis in which MPI has less traffic than there is."""
    every = analysis.analyse(CAPTURE).to_dict()
    every["mpi"]["series"] = {"bin_s": 0.001, "start_s": 1.0, "packets": [1, 2]}
    every["mpi"]["size_histogram"] = {"orig_len": [66], "packets": [3]}
    return every


@pytest.fixture
def trial() -> Trial:
    factories.experiment()
    return factories.finished()


@pytest.fixture
def captured(trial: Trial, analysed: dict[str, Any]) -> Trial:
    keep(trial, ANALYSIS_NAME, analysed, Artifact.Kind.ANALYSIS)
    return trial


def keep(trial: Trial, name: str, content: Any, kind: str) -> None:
    file = trial_directory(trial) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == Artifact.Kind.SAMPLES:
        file.write_text(json.dumps(content))
    else:
        write_analysis(file, content)
    Artifact.describe(trial.pk, kind, file).save()


def get_json(client: Client, trial: Trial, rest: str, status: int = 200) -> Any:
    answer = client.get(f"{TRIALS}{trial.pk}/{rest}")
    assert answer.status_code == status, answer.content
    return answer.json()


def test_rates_have_a_step_a_start_and_units(client: Client, captured: Trial, analysed: dict[str, Any]) -> None:
    every = get_json(client, captured, "series/")
    assert (every["step_s"], every["start_s"]) == tuple(analysed["series"][name] for name in ("bin_s", "start_s"))
    curves = {each["quantity"]: each["values"] for each in every["series"]}
    assert curves == {name: analysed["series"][name] for name in ("packets", "wire_bytes", "payload_bytes")}
    assert every["units"] == {"packets": "packets", "wire_bytes": "B", "payload_bytes": "B"}
    mpi = get_json(client, captured, "series/?scope=mpi")
    assert [(each["quantity"], each["values"]) for each in mpi["series"]] == [("packets", [1, 2])]


def test_hosts_come_in_pages_with_mean_lowest_and_highest(client: Client, trial: Trial) -> None:
    rows = [row(t, host, user=t / 10) for t in (1.0, 2.0) for host in ("n1", "n2", "n3")]
    keep(trial, "samples.json", rows, Artifact.Kind.SAMPLES)
    first = get_json(client, trial, "series/?of=hosts&limit=2")
    assert (first["count"], first["t_s"], first["step_s"]) == (3, [1.0, 2.0], None)
    assert {each["host"] for each in first["series"]} == {"n1", "n2"}
    busy = first["series"][0]
    assert (busy["quantity"], busy["values"], busy["low"], busy["high"]) == ("cpu_share", *[[0.35, 0.45]] * 3)
    assert first["units"] == {
        "cpu_share": "1",
        "cpu_system_share": "1",
        "memory_bytes": "B",
        "tx_Bps": "B/s",
        "rx_Bps": "B/s",
        "drops_per_s": "1/s",
    }
    rest = client.get(first["next"]).json()
    assert ({each["host"] for each in rest["series"]}, rest["next"]) == ({"n3"}, None)


def test_a_step_in_which_a_host_has_no_sample_is_null(client: Client, trial: Trial) -> None:
    keep(trial, "samples.json", [row(1.0, "n1"), row(1.0, "n2"), row(2.0, "n1")], Artifact.Kind.SAMPLES)
    curves = get_json(client, trial, "series/?of=hosts")["series"]
    (memory,) = (each for each in curves if (each["host"], each["quantity"]) == ("n2", "memory_bytes"))
    assert (memory["values"], memory["low"], memory["high"]) == ([1000.0, None], [1000.0, None], [1000.0, None])


def test_sizes_and_gaps_are_those_of_the_analysis(client: Client, captured: Trial, analysed: dict[str, Any]) -> None:
    every = get_json(client, captured, "histograms/")
    sizes, gaps = analysed["size_histogram"], analysed["interarrival"]
    assert every["sizes"] == {"size_bytes": sizes["orig_len"], "packets": sizes["packets"]}
    assert every["gaps"]["share_longer"] == gaps["ccdf"]["share_longer"]
    assert every["gaps"]["idc"] == gaps["idc"]["idc"]
    assert every["gaps"]["fits"] == gaps["fits"]
    assert (every["units"]["gap_s"], every["units"]["size_bytes"]) == ("s", "B")
    assert get_json(client, captured, "histograms/?scope=mpi")["sizes"] == {"size_bytes": [66], "packets": [3]}


def test_connections_are_sorted_and_paged_with_unknown_values_last(client: Client, trial: Trial) -> None:
    flows = [{"connection": n, "wire_bytes": n * 7 % 5, "rtt_min_s": n / 10 if n % 2 else None} for n in range(6)]
    keep(trial, ANALYSIS_NAME, {"series": {"packets": [1]}, "flows": flows}, Artifact.Kind.ANALYSIS)
    page = get_json(client, trial, "flows/?ordering=-wire_bytes&limit=2&offset=1")
    assert (page["count"], [each["wire_bytes"] for each in page["results"]]) == (6, [3, 2])
    assert page["units"] == {"wire_bytes": "B", "rtt_min_s": "s"}
    assert client.get(page["next"]).json()["results"][0]["wire_bytes"] == 1
    for ordering, first in (("rtt_min_s", [1, 3, 5]), ("-rtt_min_s", [5, 3, 1])):
        rows = get_json(client, trial, f"flows/?ordering={ordering}")["results"]
        assert [each["connection"] for each in rows] == [*first, 0, 2, 4]
    assert [each["connection"] for each in get_json(client, trial, "flows/")["results"]] == list(range(6))


def test_matrices_have_packets_by_host_and_rank_and_messages_by_rank(
    client: Client, captured: Trial, analysed: dict[str, Any]
) -> None:
    alone = get_json(client, captured, "matrices/")
    assert alone["ranks"]["wire_bytes"] == analysed["matrices"]["ranks"]["wire_bytes"]
    assert alone["ranks"]["labels"] == ["0", "1"]
    assert alone["hosts"]["packets"] == analysed["matrices"]["hosts"]["packets"]
    assert (alone["messages"]["pairs"], "not profiled" in alone["messages"]["missing"]) == ([], True)
    keep(captured, MPI_PROFILE_NAME, {"pairs": [[0, 1, 30, 900]], "pairs_left_out": 2}, Artifact.Kind.OTHER)
    assert get_json(client, captured, "matrices/")["messages"] == {
        "pairs": [{"source": 0, "target": 1, "messages": 30, "bytes": 900}],
        "omitted": 2,
        "missing": None,
    }
    assert alone["units"]["rtt_min_s"] == "s"


@pytest.mark.parametrize(
    ("host_ranks", "known", "why"),
    [
        ({"10.217.0.1": [7], "10.217.0.2": [3]}, ["3", "7"], None),
        ({"10.217.0.1": [0, 1], "10.217.0.2": [2]}, None, "and several ranks ran on 10.217.0.1."),
        ({}, None, "and the hosts of the ranks are unknown."),
    ],
)
def test_matrices_of_mpich_give_the_reason_for_missing_ranks(
    client: Client, trial: Trial, host_ranks: Any, known: Any, why: str | None
) -> None:
    every = analysis.analyse(CAPTURE.with_name("mpich-ucx.pcap"), host_ranks=host_ranks).to_dict()
    keep(trial, ANALYSIS_NAME, every, Artifact.Kind.ANALYSIS)
    answer = get_json(client, trial, "matrices/")
    assert (answer["ranks"] or {}).get("labels") == known
    assert answer["ranks_missing"] == (
        None if why is None else f"The MPI library does not name the rank on a connection, {why}"
    )


@pytest.mark.parametrize("part", PARTS)
def test_parts_without_capture_give_the_reason(client: Client, trial: Trial, part: str) -> None:
    assert "no analysis of a capture" in get_json(client, trial, f"{part}/")["missing"]
    (trial_directory(trial)).mkdir(parents=True, exist_ok=True)
    keep(trial, ANALYSIS_NAME, {"series": {}}, Artifact.Kind.ANALYSIS)
    (trial_directory(trial) / ANALYSIS_NAME).write_bytes(b"changed")
    assert "was changed" in get_json(client, trial, f"{part}/")["missing"]


@pytest.mark.parametrize(
    ("rest", "path"),
    [
        ("series/?scope=udp", "scope"),
        ("series/?of=disks", "of"),
        ("series/?limit=3", "limit"),
        ("series/?of=hosts&scope=mpi", "scope"),
        ("series/?of=hosts&limit=many", "limit"),
        ("histograms/?scope=", "scope"),
        ("flows/?ordering=", "ordering"),
        ("flows/?ordering=-colour", "ordering"),
        ("flows/?offset=99999999", "offset"),
        ("flows/?cursor=", "cursor"),
        ("matrices/?scope=mpi", "scope"),
    ],
)
def test_unknown_values_are_refused_at_their_name(client: Client, captured: Trial, rest: str, path: str) -> None:
    assert get_json(client, captured, rest, 400)["errors"][0]["path"] == path


@pytest.mark.parametrize("part", [*PARTS, "wire", "profile"])
def test_who_has_a_part_gets_it_no_second_time(client: Client, captured: Trial, part: str) -> None:
    address = f"{TRIALS}{captured.pk}/{part}/"
    etag = client.get(address).headers["ETag"]
    same = client.get(address, headers={"If-None-Match": etag})
    assert (same.status_code, same.content) == (304, b"")
    assert client.get(address, headers={"If-None-Match": '"another"'}).status_code == 200
