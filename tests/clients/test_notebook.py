"""The notebook of an experiment: valid, and its cells run against a live server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import django.test
import httpx
import pytest
import rankwire_client
from rankwire_client import Client

from experiments.library import load_published
from experiments.models import Experiment, TrialResult
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("session_directory")
CELL = {"cell_type", "id", "metadata", "source"}


def notebook_of(experiment: Experiment, live_server: Any) -> dict[str, Any]:
    browser = django.test.Client()
    browser.force_login(experiment.owner)
    host = live_server.url.removeprefix("http://")
    answer = browser.get(f"{experiment.get_absolute_url()}notebook.ipynb", headers={"host": host})
    assert answer["Content-Disposition"] == f'attachment; filename="{experiment.slug}.ipynb"'
    notebook: dict[str, Any] = json.loads(answer.content)
    return notebook


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """Run the code cells in plain Python and return their variables."""
    variables: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile(cell["source"], cell["id"], "exec"), variables)  # noqa: S102 (the tested program)
    return variables


@pytest.fixture
def experiment(client: Client) -> Experiment:
    sweep = {"hosts": [1, 2, 4], "link.mtu": [1500, 9000]}
    experiment = factories.experiment(
        owner=factories.person("bo", "viewer"), name="MTU {of} 'two'", sweep=sweep, repetitions=3
    )
    for number in range(18):
        factories.finished(TrialResult({"all": {"elapsed_s": 10.0 + number}}, {}, "good"))
    return experiment


def test_name_of_an_experiment_is_plain_text(client: Client, live_server: Any) -> None:
    name = "A\n\n`pip install evil`\n\n[here](javascript:1) <img src=x>"
    experiment = factories.experiment(owner=factories.person("bo", "viewer"), name=name)
    heading, blank, link, *_ = notebook_of(experiment, live_server)["cells"][0]["source"].splitlines()
    assert heading == r"# A \`pip install evil\` \[here\](javascript:1) \<img src=x\>"
    assert blank == ""
    assert link.startswith("[The experiment](http")


def test_notebook_redraws_the_main_chart_from_the_trials(
    client: Client, experiment: Experiment, live_server: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.delenv("RANKWIRE_URL")
    notebook = notebook_of(experiment, live_server)
    variables = executed(notebook)
    assert variables["trials"].height == 18
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "numpy", None)  # the notebook's instructions do not install it
        exec(compile(notebook["cells"][-1]["source"], "chart", "exec"), variables)  # noqa: S102
    drawn = {(t.name, x): y for t in variables["figure"].data for x, y in zip(t.x, t.y, strict=True)}
    assert len(drawn) == 6
    rows = client.frame(experiment=experiment.slug, rows="configurations").iter_rows(named=True)
    stored = {(f"link.mtu {r['parameter.link.mtu']}", r["parameter.hosts"]): r["elapsed_s.median"] for r in rows}
    assert drawn == stored
    assert all(min(t.error_y.array + t.error_y.arrayminus) > 0 for t in variables["figure"].data)
    assert variables["figure"].layout.yaxis.title.text == "Elapsed time (s)"
    assert capsys.readouterr().out.strip()


def test_notebook_has_the_fields_of_its_format_and_no_token(
    client: Client, experiment: Experiment, live_server: Any
) -> None:
    notebook = notebook_of(experiment, live_server)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    for cell in notebook["cells"]:
        assert set(cell) == CELL | ({"execution_count", "outputs"} if cell["cell_type"] == "code" else set())
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert os.environ["RANKWIRE_TOKEN"] not in json.dumps(notebook)


def test_notebook_installs_the_client_that_its_server_offers(
    client: Client, experiment: Experiment, live_server: Any, tmp_path: Path
) -> None:
    introduction = notebook_of(experiment, live_server)["cells"][0]["source"]
    match = re.search(r"'rankwire-client\[polars\] @ (\S+)'", introduction)
    assert match is not None
    answer = httpx.get(match[1])  # pip has no session
    file = tmp_path / match[1].rpartition("/")[2]
    file.write_bytes(answer.content)
    target = tmp_path / "installed"
    pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile", "--target", target, file]
    subprocess.run([sys.executable, *pip], check=True)
    source = Path(rankwire_client.__file__).parent
    for path in (*source.glob("*.py"), source / "py.typed"):
        assert (target / "rankwire_client" / path.name).read_bytes() == path.read_bytes()
    (distribution,) = distributions(path=[str(target)])
    assert 'polars>=1; extra == "polars"' in (distribution.requires or [])
    assert {entry.name: entry.value for entry in distribution.entry_points}[
        "rankwire"
    ] == "rankwire_client.command:main"
    assert httpx.get(f"{live_server.url}/client/rankwire_client-0-py3-none-any.whl").status_code == 404


def test_notebook_of_a_published_study_runs(client: Client, experiment: Experiment, live_server: Any) -> None:
    load_published()
    study = Experiment.objects.get(slug="pinning-2007-wan")
    study.owner = experiment.owner
    variables = executed(notebook_of(study, live_server))
    assert variables["medians"].height == variables["trials"].height == 64
