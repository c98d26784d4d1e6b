"""Imports of external results by page and REST: dry run and refusals."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from lxml import html

from experiments.models import Experiment
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.dashboard.api.clients import client_of
from tests.dashboard.texts import plain_text
from tests.experiments.exchange import reports
from tests.experiments.workloads.samples import sample

pytestmark = pytest.mark.usefixtures("empty_redis", "session_directory")

FIGURES = (
    b"name: Weather\nworkload: wrf\ncluster: Hawk\ntrials:\n  - {parameters: {hosts: 2}, figures: {elapsed_s: 2}}\n"
)
WITH_FILES = (
    b"name: Ping-pong on Hawk\nworkload: imb\ncluster: Hawk\nparameters: {benchmark: PingPong, hosts: 2}\n"
    b"trials:\n  - {output: imb.txt, capture: wire.pcapng, figures: {elapsed_s: 3}}\n"
)


def text_of(response: Any) -> str:
    return plain_text(response.content.decode())


def sent(name: str, content: bytes, **fields: Any) -> dict[str, Any]:
    return {"file": SimpleUploadedFile(name, content), "project": "default", **fields}


def archive(**files: bytes) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as target:
        for name, content in files.items():
            target.writestr(name.replace("__", "."), content)
    return stream.getvalue()


def with_files() -> bytes:
    start_ns = 1_700_000_000_000_000_000
    frames = [Frame.whole(start_ns + n * 1_000_000, ethernet(ipv4(tcp(seq=1 + n, flags=0x10)))) for n in range(20)]
    output = sample("imb-mpi1-pingpong.txt").encode()
    return archive(measured__yaml=WITH_FILES, imb__txt=output, wire__pcapng=pcapng(frames))


def imported() -> Any:
    return Experiment.objects.exclude(origin={})


def test_a_description_comes_in_with_its_files(page: Client) -> None:
    page.post("/imports/", sent("hawk.zip", with_files()))
    page.post("/imports/", sent("hawk.zip", with_files(), **{"import": "1"}))
    values = dict(imported().get().trials.get().measurements.filter(scope="all").values_list("metric", "value"))
    assert values["packets"] == 20
    assert "imb.time_s" in values


def test_a_description_that_is_sent_reads_no_file_of_this_machine(page: Client, tmp_path: Path) -> None:
    (tmp_path / "imb.txt").write_text(sample("imb-mpi1-pingpong.txt"))
    for path in ("imb.txt", str(tmp_path / "imb.txt"), "../imb.txt"):
        text = FIGURES.replace(b"wrf", b"imb").replace(b"figures: {elapsed_s: 2}", f"output: {path}".encode())
        answer = page.post("/imports/", sent("a.yaml", text, **{"import": "1"}))
        assert answer.status_code == 422
        assert "trials.0.output" in text_of(answer)
    assert not imported().exists()


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("application/yaml", FIGURES, ("description", 1)),
        ("application/json", json.dumps(reports.ramble()).encode(), ("report", 2)),
        ("application/zip", with_files(), ("description", 1)),
    ],
)
def test_rest_takes_the_same(person: User, kind: str, body: bytes, expected: tuple[str, int]) -> None:
    api = client_of(person)
    tried = api.post("/api/v1/imports/?dry_run=true", body, content_type=kind)
    assert tried.status_code == 200
    assert (tried.json()["kind"], tried.json()["arrivals"][0]["trials"]) == expected
    assert tried.json()["arrivals"][0]["experiment"] is None
    assert bool(tried.json()["left_out"]) == (expected[0] == "report")
    assert not imported().exists()
    assert api.post("/api/v1/imports/", body, content_type=kind).status_code == 201
    assert api.post("/api/v1/imports/", body, content_type=kind).status_code == 200


def test_rest_says_where_it_is_wrong(person: User) -> None:
    body = FIGURES.replace(b"elapsed_s", b"elapsed_z")
    answer = client_of(person).post("/api/v1/imports/", body, content_type="application/yaml")
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["path"], error["line"]) == (400, "trials.0.figures.elapsed_z", 5)
    answer = client_of(person).post("/api/v1/imports/", b'{"a": 1}', content_type="application/json")
    assert (answer.status_code, "known here" in answer.json()["errors"][0]["message"]) == (400, True)
    assert client_of(person).post("/api/v1/imports/", b"a", content_type="text/plain").status_code == 415


def test_unknown_figures_are_drawn_without_empty_charts(page: Client) -> None:
    page.post("/imports/", sent("report.json", json.dumps(reports.ramble()).encode(), **{"import": "1"}))
    experiment = imported().get()
    document = html.fromstring(page.get(experiment.get_absolute_url()).content.decode())
    figures = {
        element.get("id"): json.loads(element.text)
        for element in document.xpath("//script[starts-with(@id, 'figure-')]")
    }
    drawn = {
        name: [y for line in figure["data"] for y in line["y"] if y is not None] for name, figure in figures.items()
    }
    assert drawn
    assert all(drawn.values()), drawn
    assert any(values[:2] == [12.5, 7.5] for values in drawn.values()), drawn
