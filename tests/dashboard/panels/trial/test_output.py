"""Output of a trial: its figures link to the lines that they come from."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from experiments.models import Trial, TrialResult
from experiments.reparse import reparse
from tests.experiments import factories
from tests.experiments.workloads.samples import sample

WATER = sample("lammps-water-stdout.txt")


def finished(workload: str, parameters: dict[str, object], *files: tuple[str, bytes, str], hosts: int = 4) -> Trial:
    factories.experiment(workload=workload, parameters=parameters, sweep={"hosts": [hosts]})
    trial = factories.analysing()
    stored = [factories.stored_file(trial, name, content, kind) for name, content, kind in files]
    trial.finish(TrialResult({"all": {"elapsed_s": 20.0}, "mpi": {}}, {}, "good", artifacts=stored))
    assert reparse([trial]).changed == 1
    return trial


def links_and_marks(page: Client, trial: Trial) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    html = page.get(trial.get_absolute_url()).content.decode()
    rows = re.findall(
        r'class="faint mono">([\w.-]+)</span>\s*<a\s+class="small"\s+href="#([\w-]+)"\s*>([^<]*)</a>', html
    )
    marks = re.findall(r'<mark id="([\w-]+)" title="[^"]+">([^<]*)</mark>', html)
    return {metric: (anchor, " ".join(words.split())) for metric, anchor, words in rows}, dict(marks)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_figures_link_to_their_lines_of_standard_output(db, session_directory, page: Client, encoding: str) -> None:
    content = WATER.replace("\n", "\r\n").encode(encoding)
    trial = finished("water", {"molecules": 512, "steps": 100}, ("stdout.txt", content, "stdout"))
    links, marks = links_and_marks(page, trial)
    anchor, words = links["water.loop_time_s"]
    assert words == "line 54"
    assert marks[anchor].startswith("Loop time of 8.62671 on 4 procs")
    assert marks[links["water.kspace_s"][0]].startswith("Kspace  | 4.5968")
    assert set(marks) == {anchor for anchor, _ in links.values()}


def test_figures_link_to_their_lines_of_written_files(db, session_directory, page: Client) -> None:
    files = (("hpccoutf.txt", sample("hpcc-hpccoutf.txt").encode(), "other"), ("stdout.txt", b"", "stdout"))
    trial = finished("hpl", {"ns": 1000, "nb": 80, "p": 2, "q": 2}, *files)
    links, marks = links_and_marks(page, trial)
    anchor, words = links["hpl.time_s"]
    assert re.fullmatch(r"hpccoutf\.txt, line \d+", words)
    assert marks[anchor].startswith("HPL_time=0.701384")


def test_long_output_is_shown_without_marks(db, session_directory, page: Client) -> None:
    content = (WATER + "." * 200_000).encode()
    trial = finished("water", {"molecules": 512, "steps": 100}, ("stdout.txt", content, "stdout"))
    assert links_and_marks(page, trial) == ({}, {})
    assert "Empty." not in page.get(trial.get_absolute_url()).content.decode()
