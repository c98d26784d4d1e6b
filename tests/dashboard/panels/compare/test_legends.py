"""Long names in the legends of a comparison keep the end that tells versions apart."""

from __future__ import annotations

import json
import re

from django.test import Client

from dashboard.panels.compare.charts import LONGEST_NAME
from experiments.models import Project
from tests.dashboard.studies_measured import measured

SPECIFICATION = {"workload": "water", "sweep": {"hosts": [1, 2]}, "repetitions": 1}


def test_versions_of_one_long_name_are_told_apart(page: Client, library: Project) -> None:
    names = [f"Water over TCP with two interfaces, version {number}" for number in (1, 2)]
    both = [
        measured(library, {**SPECIFICATION, "name": name}, lambda parameters: {"elapsed_s": 4.0 / parameters["hosts"]})
        for name in names
    ]
    html = page.get("/compare/", {"of": ",".join(f"e:{each.slug}" for each in both)}).content.decode()
    figure = json.loads(re.search(r'id="figure-overlay-elapsed_s">(.+?)</script>', html, re.DOTALL)[1])
    shown = [trace["name"] for trace in figure["data"] if not trace["name"].endswith(", trials")]
    assert [name[-9:] for name in shown] == ["version 1", "version 2"]
    assert all(name[3:].startswith("Water") and len(name[3:]) <= LONGEST_NAME for name in shown)
