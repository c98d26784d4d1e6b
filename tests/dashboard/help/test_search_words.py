"""Words that users type lead to the page that answers them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.conf import settings
from django.test import Client

from dashboard.help.guides import SEARCH_WORDS, guides, search
from experiments.models import Cluster, Experiment, Project
from tests.experiments import factories

FIRST_HITS = {
    "regression": "follow-histories",
    "baseline": "follow-histories",
    "slower than last week": "follow-histories",
    "nightly": "follow-histories#repeat-trials-every-night",
    "schedule": "follow-histories#repeat-trials-every-night",
    "cron": "follow-histories#repeat-trials-every-night",
    "how do I invite a colleague": "work-in-projects#invite-a-user",
    "RAPL": "let-users-read-rapl",
    "pin ranks": "bind-ranks",
    "speedup": "terms#speed-up",
    "upgrade": "upgrade",
    "slow node": "add-a-cluster#find-a-slow-host",
    "InfiniBand": "measure-on-infiniband",
    "energy": "energy-of-a-run",
    "Kubernetes": "run-in-containers",
    "dark mode": "work-in-projects#your-account",
    "delete": "find-trials#change-many-experiments",
    "efficiency": "terms#efficiency",
    "scaling": "answers#models",
    "descheduled": "terms#descheduled",
    "pooled scatter": "answers#strength",
    "weak scaling": "answers#models",
    "outliers": "terms#finding.outliers",
    "noise": "terms#finding.noisy",
    "warm-up": "terms#warm-up",
    "warmup": "terms#warm-up",
    "password": "manage-accounts#reset-a-password",
    "token": "use-a-token",
    "API": "rest",
    "export": "explore-results#export",
    "CSV": "explore-results#export",
    "Docker": "run-in-containers",
    "Slurm": "add-a-cluster#slurm",
    "authorized_keys": "add-a-cluster#hosts-over-ssh",
    "ssh-copy-id": "add-a-cluster#hosts-over-ssh",
    "worker's user": "terms#workers-user",
    "external database": "add-workers#move-to-a-database-of-your-own",
    "rollback": "upgrade#back-to-the-old-version",
    "PBS": "add-a-cluster#pbs-lsf-flux-grid-engine",
    "ssh": "add-a-cluster#hosts-over-ssh",
    "GPU": "energy-of-a-run",
    "firewall": "run-behind-a-proxy",
    "latency": "terms#link.delay",
    "bandwidth": "terms#link.bandwidth",
    "jitter": "terms#link.jitter",
    "packet loss": "terms#link.loss",
    "MTU": "terms#link.mtu",
    "confidence interval": "terms#answer.intervals",
    "p-value": "terms#answer.intervals",
    "repetitions": "terms#repetition",
    "median": "terms#answer.intervals",
    "backup": "back-up",
    "pause": "run-until-answered#pause-stop-continue",
    "restore": "back-up",
    "trash": "find-trials#change-many-experiments",
    "LDAP": "manage-accounts#ldap",
    "SSO": "manage-accounts#openid-connect",
    "webhook": "get-notified",
    "email": "get-notified",
    "quota": "share-machines",
    "quota per user": "share-machines",
    "limit per user": "share-machines",
    "remove user": "manage-accounts",
    "rename cluster": "add-a-cluster",
    "disk full": "share-machines#quotas",
    "change log": "manage-accounts#see-who-changed-what",
    "nginx": "run-behind-a-proxy",
    "S3": "use-a-bucket",
    "notebook": "client",
    "Wireshark": "measurement",
    "hostfile": "add-a-cluster#hosts-over-ssh",
    "HPL": "workloads",
    "history": "follow-histories",
    "invite": "work-in-projects",
    "install": "install",
    "offline": "install#machines-without-internet",
    "oversubscription": "terms#finding.oversubscribed",
    "time limit": "specification",
    "PDF": "share-a-report",
    "ofed": "measure-on-infiniband",
    "memlock": "measure-on-infiniband#before-the-first-trial",
    "munge": "add-a-cluster#slurm",
    "trial pending": "states#states-of-a-trial",
    "queue stuck": "states#states-of-a-trial",
    "uninstall": "install#remove-rankwire",
    "license": "install#remove-rankwire",
    "delete old captures": "settings#RANKWIRE_CAPTURE_RETENTION_DAYS",
    "retention": "settings#RANKWIRE_CAPTURE_RETENTION_DAYS",
    "health": "run-the-server#outages-and-monitoring",
    "changelog": "changelog",
    "how do I delete an experiment": "find-trials#change-many-experiments",
}


@pytest.mark.parametrize(("words", "page"), FIRST_HITS.items())
def test_search_finds_the_answering_page_first(words: str, page: str) -> None:
    first, name = search(words)[0], page.partition("#")[0]
    assert (first.guide.name, first.section.anchor if "#" in page else "") == (name, page.partition("#")[2])


def test_search_words_are_unique_and_lead_once_to_a_section() -> None:
    table = (settings.BASE_DIR / "docs" / "reference" / f"{SEARCH_WORDS}.md").read_text()
    words = [word.strip() for row in table.splitlines() if "](" in row for word in row.split("|")[1].split(",")]
    assert len(words) == len(set(words)) > 200
    assert "Not supported" in search("Kubernetes")[0].excerpt
    sections = [id(hit.section) for hit in search("upgrade")]
    assert len(sections) == len(set(sections))


def test_words_inside_a_longer_phrase_of_the_table_add_no_hit() -> None:
    assert "hosts-over-ssh" in [hit.section.anchor for hit in search("node")]
    assert "hosts-over-ssh" not in [hit.section.anchor for hit in search("slow node")]


def test_a_misspelled_word_without_results_leads_to_the_word(page: Client) -> None:
    answer = page.get("/help/", {"q": "infinband"})
    assert (answer.context["hits"], answer.context["similar_words"]) == ([], ["infiniband"])
    assert "?q=infiniband" in answer.content.decode()
    assert list(page.get("/help/", {"q": "zzyzx"}).context["similar_words"]) == []


@pytest.mark.parametrize("words", ["karp", "Karp-Flatt", "Karp\u2013Flatt", "karp\u2010flatt"])
def test_hyphens_and_dashes_separate_words(words: str) -> None:
    assert any(hit.section.anchor == "serial-fraction" for hit in search(words))


def test_search_for_ports_finds_those_of_clusters_too() -> None:
    assert "add-a-cluster#ports" in [f"{hit.guide.name}#{hit.section.anchor}" for hit in search("firewall")]


def test_settings_are_titled_by_their_names_and_not_by_their_defaults() -> None:
    sections = guides()["settings"].page.sections
    assert {section.title for section in sections if section.anchor.startswith("RANKWIRE_")} == {
        section.anchor for section in sections if section.anchor.startswith("RANKWIRE_")
    }


def test_header_search_lists_what_the_user_may_read_before_the_guides(
    page: Client, client: Client, submit: Callable[..., Experiment]
) -> None:
    submit(name="Search of a regression")
    Cluster.objects.create(slug="rack", name="Regression rack", kind="ssh", settings={"hosts": ["n1"]})
    other = Project.create_named("Regression secrets")
    factories.experiment(project=other, name="Hidden regression")
    factories.person("regressor")
    assert page.get("/search/", {"q": "regression"}).headers["Location"] == "/help/?q=regression"

    def groups_of(client: Client, words: str) -> dict[str, list[str]]:
        context = client.get("/help/", {"q": words}).context
        return {group.title: [row.name for row in group.rows] for group in context["groups"]}

    assert groups_of(page, "regress") == {"Experiments": ["Search of a regression"], "Clusters": ["Regression rack"]}
    assert page.get("/help/", {"q": "regression"}).context["hits"], "guides follow"
    assert "OSU" in str(groups_of(page, "osu")["Workloads"])
    assert groups_of(page, "zzyzx") == {}
    root = type(client)()
    root.force_login(factories.person("root", is_superuser=True))
    everything = groups_of(root, "regress")
    assert everything["Users"] == ["regressor"]
    assert everything["Projects"] == ["Regression secrets"]
    assert "Hidden regression" in everything["Experiments"]
    for group in root.get("/help/", {"q": "regress"}).context["groups"]:
        assert {root.get(address).status_code for address in (group.address, group.rows[0].address)} == {200}
