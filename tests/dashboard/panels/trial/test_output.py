"""Output of a trial: parts of long files, search, and lines of figures."""

from __future__ import annotations

import re
import tracemalloc
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from dashboard.panels.trial.output import MOST_COUNTED, MOST_MATCHES, SHOWN_CHARACTERS, SHOWN_LINES, shown_text
from experiments.models import Trial, TrialResult
from experiments.reparse import reparse
from tests.dashboard.texts import plain_text
from tests.experiments import factories
from tests.experiments.workloads.samples import sample

WATER = sample("lammps-water-stdout.txt")
PARAMETERS = {"molecules": 512, "steps": 100}


def finished(workload: str, parameters: dict[str, object], *files: tuple[str, bytes, str], hosts: int = 4) -> Trial:
    factories.experiment(workload=workload, parameters=parameters, sweep={"hosts": [hosts]})
    trial = factories.analysing()
    stored = [factories.stored_file(trial, name, content, kind) for name, content, kind in files]
    trial.finish(TrialResult({"all": {"elapsed_s": 20.0}, "mpi": {}}, {}, "good", artifacts=stored))
    assert reparse([trial]).changed == 1
    return trial


class Shown:
    """A part of a trial's output as its page gets it."""

    def __init__(self, page: Client, trial: Trial, **query: str) -> None:
        answer = page.get(reverse("trial-output", args=[trial.pk]), query)
        self.html = answer.content.decode()
        lines = re.findall(
            r'<span\s+id="L(\d+)"\s+(class="hit")?\s*><a [^>]*>\d+</a>(.*?)\n</span>', self.html, re.DOTALL
        )
        self.lines = {int(number): unescape(re.sub("<[^>]+>", "", text)) for number, _, text in lines}
        self.hits = [int(number) for number, hit, _ in lines if hit]
        self.figures = {int(number): text for number, _, text in lines if "<mark" in text}
        self.address = answer.headers["HX-Replace-Url"].removeprefix(trial.get_absolute_url())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_figure_leads_to_its_line_of_standard_output(db, session_directory, page: Client, encoding: str) -> None:
    content = WATER.replace("\n", "\r\n").encode(encoding)
    trial = finished("water", PARAMETERS, ("stdout.txt", content, "stdout"))
    links = re.findall(r'href="\?tab=output&amp;figure=([\w.-]+)"', page.get(trial.get_absolute_url()).content.decode())
    assert {"water.loop_time_s", "water.kspace_s"} <= set(links)
    part = Shown(page, trial, figure="water.loop_time_s")
    assert part.address == "?tab=output#L54"
    assert part.lines[54].startswith("Loop time of 8.62671 on 4 procs")
    assert 'title="Loop time"' in part.figures[54]
    assert Shown(page, trial, figure="water.kspace_s").address == "?tab=output#L64"
    assert len(part.figures) == len({Shown(page, trial, figure=figure).address for figure in links})


def test_figure_leads_to_its_line_of_a_written_file(db, session_directory, page: Client) -> None:
    files = (("hpccoutf.txt", sample("hpcc-hpccoutf.txt").encode(), "other"), ("stdout.txt", b"", "stdout"))
    trial = finished("hpl", {"ns": 1000, "nb": 80, "p": 2, "q": 2}, *files)
    part = Shown(page, trial, figure="hpl.time_s")
    line = int(part.address.partition("#L")[2])
    assert part.lines[line].startswith("HPL_time=0.701384")
    assert Shown(page, trial, file="hpccoutf.txt").figures[line]


def test_figure_of_a_long_output_leads_to_its_line(db, session_directory, page: Client) -> None:
    content = (WATER + "a step of many\n" * 400_000).encode()
    trial = finished("water", PARAMETERS, ("stdout.txt", content, "stdout"))
    end = Shown(page, trial)
    assert (len(end.lines), max(end.lines), end.address) == (SHOWN_LINES, WATER.count("\n") + 400_000, "?tab=output")
    part = Shown(page, trial, figure="water.loop_time_s")
    assert part.address == "?tab=output#L54"
    assert part.lines[54].startswith("Loop time of 8.62671")
    around = Shown(page, trial, line="200000")
    assert (min(around.lines) < 200_000 < max(around.lines), len(around.lines)) == (True, SHOWN_LINES)
    assert around.address == "?tab=output#L200000"
    assert Shown(page, trial, line="9" * 9).address == f"?tab=output#L{max(end.lines)}"


def test_search_lists_the_lines_of_the_whole_file(db, session_directory, page: Client) -> None:
    content = (WATER + "a step of many\n" * 5_000).encode()
    trial = finished("water", PARAMETERS, ("stdout.txt", content, "stdout"))
    part = Shown(page, trial, words="LOOP time")
    assert (part.hits, part.address) == ([54], "?tab=output&words=LOOP+time#L54")
    assert "1 line contains" in plain_text(part.html)
    assert "5 000 lines contain" in plain_text(Shown(page, trial, words="a step of").html).replace("\u202f", " ")
    nothing = Shown(page, trial, words="<nothing>")
    assert (nothing.hits, "0 lines contain “&lt;nothing&gt;”" in nothing.html) == ([], True)


def test_long_line_is_cut_and_says_so(db, session_directory, page: Client) -> None:
    trial = finished("water", PARAMETERS, ("stdout.txt", (WATER + "." * 9_000).encode(), "stdout"))
    last = Shown(page, trial).lines[WATER.count("\n") + 1]
    assert last == "." * SHOWN_CHARACTERS + " … 7\u202f000 more characters"


def test_unknown_figure_says_so_at_the_output(db, session_directory, page: Client) -> None:
    trial = finished("water", PARAMETERS, ("stdout.txt", WATER.encode(), "stdout"))
    part = Shown(page, trial, figure="no.such")
    assert "No line found for no.such" in plain_text(part.html)
    assert 54 in part.lines


def test_failed_trial_opens_its_errors_first(db, session_directory, page: Client) -> None:
    factories.experiment()
    trial = factories.analysing()
    for name, content in (("stdout.txt", b"step 1\n"), ("stderr.txt", b"ERROR: lost atoms\n")):
        factories.stored_file(trial, name, content, name.removesuffix(".txt")).save()
    trial.fail("LAMMPS stopped.")
    assert Shown(page, trial).lines == {1: "ERROR: lost atoms"}
    assert Shown(page, trial, file="stdout.txt").lines == {1: "step 1"}


def test_output_of_short_lines_takes_few_times_its_size(db, session_directory, page: Client) -> None:
    content = "Ab\u00e9\r\n".encode() * 1_000_000
    trial = finished("water", PARAMETERS, ("stdout.txt", WATER.encode(), "stdout"))
    artifact = factories.stored_file(trial, "short.txt", content, "stdout")
    tracemalloc.start()
    try:
        part = shown_text(trial, [artifact], artifact, words="B\u00c9")
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 10 * len(content)
    assert (part.total, part.line, part.match_count, part.has_more_matches) == (1_000_000, 1, MOST_COUNTED, True)
    assert [line.number for line in part.matches] == [*range(1, MOST_MATCHES + 1)]
    assert {line.text for line in part.lines} == {"Ab\u00e9"}
    assert all(line.is_match for line in part.lines)
