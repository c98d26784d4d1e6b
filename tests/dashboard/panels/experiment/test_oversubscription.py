"""Virtual hosts share this machine's cores: whoever reads an elapsed time of theirs is told so beside it."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from experiments.models import Experiment, Trial
from experiments.spec import parse
from tests.dashboard.laboratory import specification


def ran(trial: Trial) -> None:
    """As on the test-bed, which tells this of itself; other launchers say None."""
    here = trial.cluster is not None and trial.cluster.slug == "testbed"
    words = f"{trial.configuration.hosts} virtual hosts on 2 cores" if here else None
    Trial.objects.filter(pk=trial.pk).update(conditions={"cores": 2, "oversubscription": words})


@pytest.mark.parametrize(
    ("hosts", "words"), [([2, 4], "Up to 4 virtual hosts on 2 cores"), ([2], "2 virtual hosts on 2 cores")]
)
def test_it_says_so_in_the_head_of_an_experiment_as_soon_as_a_trial_has_ended(page, submit, run, hosts, words):
    experiment = submit(sweep={"hosts": hosts}, repetitions=2)
    assert "virtual hosts on" not in page.get(experiment.get_absolute_url()).content.decode()
    run(most=2)
    for trial in experiment.trials.filter(state="finished"):
        ran(trial)
    poll = page.get(reverse("experiment-live", args=[experiment.slug]), {"seen": 0}).content.decode()
    assert f'<li id="oversubscription" hx-swap-oob="true">{words}</li>' in poll
    assert f'<li id="oversubscription">{words}</li>' in page.get(experiment.get_absolute_url()).content.decode()


def test_it_says_on_how_many_cores_in_the_head_of_a_trial(page, submit, run):
    trial = submit(sweep={"hosts": [4]}).trials.first()
    run(most=1)
    ran(trial)
    head = page.get(trial.get_absolute_url()).content.decode().partition("</ul>")[0]
    assert "<li>4 virtual hosts on 2 cores</li>" in head


def test_it_says_so_at_each_virtual_member_of_a_comparison(page, submit, run, library, person):
    virtual = submit(sweep={"hosts": [1]})
    run()
    real = Experiment.submit(parse(specification(cluster="local", sweep={"hosts": [1]})), project=library, owner=person)
    real.trials.update(state="finished")
    for trial in (*virtual.trials.all(), *real.trials.all()):
        ran(trial)
    answer = page.get("/compare/", {"of": f"e:{virtual.slug},e:{real.slug}"})
    assert [head["oversubscription"] for head in answer.context["members"]] == ["1 virtual hosts on 2 cores", ""]
    assert answer.content.decode().count("1 virtual hosts on 2 cores") == 1


def test_it_leaves_real_hosts_unremarked(page, library, person):
    spec = parse(specification(cluster="local", sweep={"hosts": [1]}, repetitions=1))
    experiment = Experiment.submit(spec, project=library, owner=person)
    ran(experiment.trials.get())
    experiment.trials.update(state="finished")
    for path in (experiment.get_absolute_url(), experiment.trials.get().get_absolute_url()):
        assert not re.search(r"<li[^>]*>[^<]*(None|virtual hosts? on)", page.get(path).content.decode())
