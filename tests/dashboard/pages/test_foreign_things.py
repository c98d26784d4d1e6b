"""Isolation of users: counts, views, estimates, clusters, and names in charts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from dashboard.templatetags.rankwire import figure
from experiments.access import visible_deleted
from experiments.deletion import delete
from experiments.exchange.external_results import import_description
from experiments.models import Cluster, ExpectedChange, Experiment, Project, Report, SavedView, ShareLink
from experiments.specification import parse
from tests.dashboard.api.clients import client_of
from tests.dashboard.laboratory import specification
from tests.experiments import factories


@pytest.fixture
def hidden(library: Project) -> Project:
    """A project whose only member is ada, a maintainer."""
    project = Project.objects.create(slug="hidden", name="Hidden")
    factories.person("ada", "maintainer", project)
    return project


def secret(project: Project) -> Experiment:
    return Experiment.submit(
        parse(specification(name="Secret plan")), project=project, owner=User.objects.get(username="ada")
    )


def test_histories_show_no_reasons_of_other_projects(hidden: Project, person: User, submit: Any, run: Any) -> None:
    submit(), secret(hidden)
    run()
    connection.check_constraints()
    for experiment in Experiment.objects.filter(published=False):
        ExpectedChange.objects.create(
            trial=experiment.trials.filter(state="finished").earliest("pk"),
            metric="elapsed_s",
            reason=f"because of {experiment.slug}",
        )
    digest = Experiment.objects.get(name="Water in miniature").configurations.get(hosts=1).hash
    history = client_of(person).get(f"/api/v1/history/{digest}/testbed/").json()
    assert [mark["reason"] for mark in history["expected"]] == ["because of water-in-miniature"]


def test_share_links_name_no_experiments_of_other_projects(
    hidden: Project, library: Project, person: User, submit: Any
) -> None:
    ada = User.objects.get(username="ada")
    library.memberships.create(user=ada, role="maintainer")
    both = [submit(name="Open"), secret(hidden)]
    query = f"of=e:{both[0].slug},e:{both[1].slug}"
    ShareLink.issue(both, by=ada, days=7, query=query)
    [whole] = client_of(ada).get("/api/v1/shares/").json()["results"]
    assert (sorted(whole["experiments"]), whole["compare"]) == (sorted(e.slug for e in both), query)
    [part] = client_of(factories.person("mia", "maintainer")).get("/api/v1/shares/").json()["results"]
    assert (part["experiments"], part["compare"]) == (["open"], "")


def test_estimates_rest_on_visible_trials(
    hidden: Project, library: Project, page: Client, person: User, submit: Any, run: Any
) -> None:
    """The medians of other projects' trials are no basis."""

    def bases(user: User) -> set[str]:
        answer = client_of(user).post("/api/v1/validate/", json.dumps(specification()), "application/json")
        return {point["basis"] for point in answer.json()["points"]}

    secret(hidden)
    run()
    library.memberships.create(user=User.objects.get(username="ada"), role="submitter")
    assert bases(person) == {"rough guess, no past trial"}
    assert bases(User.objects.get(username="ada")) == {"2 past trials"}
    preview = page.post("/experiments/new/preview/", {"source": "yaml", "yaml": json.dumps(specification())})
    assert {row.estimate.past_trials for row in preview.context["preview"].rows} == {0}
    submit()
    run()
    assert bases(person) == {"2 past trials"}


def test_clusters_of_imports_are_visible_with_their_experiments(
    hidden: Project, page: Client, person: User, tmp_path: Path
) -> None:
    path = tmp_path / "weather.yaml"
    runs = {"name": "Weather", "workload": "wrf", "cluster": "Hawk", "trials": [{"figures": {"elapsed_s": 2}}]}
    path.write_text(json.dumps(runs))
    import_description(path, project=hidden, owner=User.objects.get(username="ada"))
    one, lists = (
        "/clusters/hawk-elsewhere/",
        ("/clusters/", "/trials/", "/experiments/?cluster=x", "/history/", "/api/v1/status/"),
    )
    assert [page.get(address).status_code for address in (one, f"/api/v1{one}")] == [404, 404]
    assert [address for address in lists if "hawk" in page.get(address).text.lower()] == []
    hidden.memberships.create(user=person, role="viewer")
    assert [page.get(address).status_code for address in (one, f"/api/v1{one}")] == [200, 200]
    assert [address for address in lists if "hawk" not in page.get(address).text.lower()] == []


def test_imports_take_no_facts_of_clusters_that_other_projects_imported(
    hidden: Project, library: Project, tmp_path: Path
) -> None:
    """A forged bundle states no price or kind of the clusters of later imports."""
    forged = Cluster.objects.create(
        slug="hawk-elsewhere", name="Hawk", kind="testbed", facts={"price": 1.0}, elsewhere=True, enabled=False
    )
    path = tmp_path / "weather.yaml"
    runs = {"name": "Weather", "workload": "wrf", "cluster": "Hawk", "trials": [{"figures": {"elapsed_s": 2}}]}
    clusters = []
    for project, source in ((library, "a"), (library, "b"), (hidden, "c")):
        path.write_text(json.dumps(runs | {"source": source}))
        experiment = import_description(path, project=project).stored
        assert experiment is not None
        clusters.append(experiment.cluster)
        Cluster.objects.filter(slug="hawk-elsewhere-2").update(facts={"price": 2.0})  # by a maintainer
    assert [cluster.slug for cluster in clusters] == ["hawk-elsewhere-2", "hawk-elsewhere-2", "hawk-elsewhere-3"]
    assert {cluster.kind for cluster in clusters} == {"ssh"}
    assert Cluster.objects.get(pk=forged.pk).facts == {"price": 1.0}


def test_deletion_lists_the_newest_reports_by_one_search_of_all_texts(
    page: Client, person: User, submit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiments = [submit(name=f"Water {number}") for number in range(5)]
    experiments[0].trials.update(state="cancelled")
    Report.write(
        experiments[0].project, "Ours", f"About {experiments[0].slug}, not {experiments[1].slug}0", {}, by=person
    )

    def search(change: str) -> tuple[str, int]:
        with CaptureQueriesContext(connection) as queries:
            text = page.get(f"/experiments/chosen/{change}/", {"of": [f"e:{e.slug}" for e in experiments]}).text
        return text, sum("reportversion" in query["sql"] for query in queries)

    text, searches = search("delete")
    assert (text.count("quoted in the report"), text.count("possibly quoted"), searches) == (1, 0, 1)
    assert search("archive")[1] == 0
    monkeypatch.setattr("dashboard.pages.lists.experiments._MOST_QUOTING", 2)
    old = Report.objects.get()
    for title in ("Newer", "Newest"):
        Report.write(old.project, title, experiments[0].slug, {}, by=person)
    old.revise("Old", experiments[0].slug, {}, by=person, base=1)
    text, _ = search("delete")
    assert re.findall("the report &#x27;([A-Za-z]+)&", text) == ["Old", "Newest"]
    assert text.count("possibly quoted in older reports") == len(experiments)


def test_trash_takes_as_many_queries_for_many_experiments_as_for_one(page: Client, person: User, submit: Any) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            page.get("/experiments/chosen/deleted/")
        return len(queries)

    for number in range(2):
        experiment = submit(name=f"Water {number}")
        experiment.trials.update(state="cancelled")
        delete(experiment, by=person)
        if number == 0:
            few = count()
    assert (len(visible_deleted(person)), count()) == (2, few)


def test_workloads_page_counts_only_visible_experiments(page, submit) -> None:
    submit()
    hidden = Project.objects.create(slug="hidden", name="Hidden")
    Experiment.submit(parse(specification(name="Secret plan")), project=hidden)
    rows = page.get(reverse("workloads")).context["rows"]
    assert {row["workload"].slug: row["experiments"] for row in rows if row["experiments"]} == {"water": 1}


def test_slugs_reveal_no_experiments_of_other_projects(page, submit) -> None:
    hidden = Project.objects.create(slug="hidden", name="Hidden")
    foreign = [Experiment.submit(parse(specification(name=name)), project=hidden).slug for name in ("Plan", "Plan")]
    assert [submit(name=name).slug for name in ("Plan", "Hidden Plan", "Plan")] == ["plan", "hidden-plan", "plan-2"]
    assert foreign == ["hidden--plan", "hidden--plan-2"]


def test_the_many_shared_views_of_one_person_hide_no_others(page, person) -> None:
    for name, count in (("ada", 20), ("bo", 1)):
        owner = factories.person(name)
        SavedView.objects.bulk_create(
            SavedView(name=f"{name} {number:02}", owner=owner, shared=True) for number in range(count)
        )
    SavedView.objects.create(name="zz mine", owner=person)
    names = [row.view.name for row in page.get("/explore/").context["views"].rows]
    assert names[:3] == ["zz mine", "ada 00", "bo 00"]
    assert len(names) == 12


@pytest.mark.parametrize(
    "name", ["<b>bold</b>", '<a href="https://example.org">here</a>', "<br>", "a < b", "</script><script>"]
)
def test_a_name_in_a_chart_is_text(name: str) -> None:
    written = figure({"data": [{"name": name, "hovertemplate": f"%{{y}}<extra>{name}</extra>"}], "layout": {}})
    assert "<" not in written
    [trace] = json.loads(written)["data"]
    assert trace["name"] == name.replace("<", "&lt;")
    assert re.findall(r"<[^>]*>", trace["hovertemplate"]) == ["<extra>", "</extra>"]
