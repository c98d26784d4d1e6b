"""Data staging: command, recorded result, and real runs."""

import json

import pytest

from experiments.errors import OutputError
from experiments.workloads import get
from experiments.workloads.data_staging import StagingParameters

from .mpirun import run
from .samples import sample

STAGING = get("data-staging")
RECORDED = sample("staging-multicast-4-nodes.json")


def test_it_adds_up_a_recorded_result():
    result = json.loads(RECORDED)
    parsed = STAGING.parse("", {"staging.json": RECORDED})
    figures = {name.removeprefix("data-staging."): value for name, value in parsed.figures.items()}
    staged = [node["staged_s"] for node in result["nodes"]]
    assert figures["nodes"] == len(parsed.tables["Nodes"]) == 4
    assert figures["staging_s"] == max(staged)
    assert figures["aggregate_bandwidth_Bps"] == pytest.approx(4 * result["dataset_bytes"] / max(staged))
    assert figures["aggregate_bandwidth_Bps"] > 100e6 / 8, "more than the link of 100 Mbit/s carries once"
    assert figures["first_search_s"] > figures["staging_mean_s"] + figures["later_search_s"] / 2
    assert 0 < figures["utilisation"] < 1
    assert {figure.id for figure in STAGING.figures} == parsed.figures.keys()


def test_it_gives_no_later_search_after_a_single_one():
    result = json.loads(RECORDED)
    for node in result["nodes"]:
        node["searches_s"] = node["searches_s"][:1]
    parsed = STAGING.parse("", {"staging.json": json.dumps(result)})
    assert "data-staging.later_search_s" not in parsed.figures


def test_it_refuses_a_search_that_found_nothing():
    result = json.loads(RECORDED)
    result["nodes"][0]["found"][-1] = 0
    with pytest.raises(OutputError, match="found none"):
        STAGING.parse("", {"staging.json": json.dumps(result)})


@pytest.mark.parametrize("text", ["", "{}", '{"nodes": []}'])
def test_it_refuses_what_is_not_a_result(text):
    with pytest.raises(OutputError, match=r"staging\.json"):
        STAGING.parse("", {"staging.json": text})


def test_it_writes_its_command():
    parameters = StagingParameters(staging="multicast", dataset_bytes="568 MB", searches=5, multicast_rate=95e6)
    assert " ".join(STAGING.command(parameters, ranks=3)) == (
        "/usr/bin/python3 -E -s staging.py --staging multicast --dataset-bytes 568000000 --searches 5"
        " --work blast --multicast-rate 9.5e+07"
    )


@pytest.mark.parametrize(("method", "work"), [("pull", "blast"), ("tree", "read")])
def test_staging_copies_a_real_data_set_to_every_node(tmp_path, method, work):
    parameters = StagingParameters(staging=method, work=work, dataset_bytes=300_000, searches=2)
    parsed = run(STAGING, parameters, tmp_path, ranks=3)
    assert parsed.figures["data-staging.nodes"] == 2
    hits = [node["found"] for node in json.loads((tmp_path / "staging.json").read_text())["nodes"]]
    assert hits == [[parsed.figures["data-staging.staged_bytes"] if work == "read" else 20] * 2] * 2
