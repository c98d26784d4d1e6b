"""Hosts over time: stored samples, reduced if many, or the reason for none."""

import json
import re

import pytest
from django.urls import reverse

from dashboard.charts.hosts import HostLine, hosts_over_time
from dashboard.charts.parts import MOST_SERIES
from dashboard.panels.trial import host_samples
from dashboard.panels.trial.host_samples import MOST_HOSTS, MOST_STEPS, QUANTITIES, read_samples
from experiments.common import budget
from experiments.files import trial_directory
from experiments.models import Artifact, Trial
from tests.dashboard.charts.figures import checked
from tests.dashboard.panels.trial.samples import captured, row
from tests.experiments import factories
from tests.words import plain

CPU, DROPS = (QUANTITIES.index(name) for name in ("cpu_share", "drops_per_s"))
CROWDED = json.dumps([row(t / 10) for t in range(1, 1000)])


@pytest.fixture
def stored(tmp_path):
    """Writes rows as the worker does."""

    def stored(rows):
        file = tmp_path / "samples.json"
        file.write_text(json.dumps(rows))
        return read_samples(file)

    return stored


def test_it_keeps_few_samples_as_they_are(stored):
    samples = stored([row(t, host, user=t) for t in (1.0, 2.0, 2.5) for host in ("n1", "n2")])
    assert samples.hosts == ["n1", "n2"]
    assert samples.t_s == [1.0, 2.0, 2.5]
    assert samples.step_s is None
    assert samples.mean[1, :, CPU].tolist() == [1.25, 2.25, 2.75]
    assert samples.count.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_it_leaves_a_gap_for_a_host_that_fell_silent(stored):
    samples = stored([row(1.0), row(1.0, "n2"), row(2.0)])
    assert samples.count.tolist() == [[1, 1], [1, 0]]


def test_it_gives_drops_per_second_of_their_interval_and_takes_older_files_without(stored):
    samples = stored([row(2.0, drops=6), row(2.5, drops=1)])
    assert samples.mean[0, :, DROPS].tolist() == [3.0, 2.0]
    old = [{name: value for name, value in row(1.0).items() if name != "drops"}]
    assert stored(old).mean[0, 0, DROPS] == 0


def test_it_thins_hours_of_samples_and_keeps_mean_and_extremes(stored):
    seconds = 2 * 3600
    rows = [row(float(t), user=9.0 if t == 5000 else 0.5) for t in range(1, seconds + 1)]
    samples = stored(rows)
    assert len(samples.t_s) == MOST_STEPS
    assert samples.t_s[-1] == pytest.approx(seconds)
    assert samples.step_s == pytest.approx(30)
    assert samples.count.sum() == seconds
    assert samples.high[0, :, CPU].max() == 9.25
    whole = sum(value["cpu_user_share"] + value["cpu_system_share"] for value in rows) / seconds
    assert (samples.mean[0, :, CPU] * samples.count[0]).sum() / seconds == pytest.approx(whole)


def test_it_weighs_a_step_by_the_length_of_its_intervals(stored):
    steps = [float(t) for t in range(2, 2 * MOST_STEPS + 1, 2)]
    samples = stored([item for t in steps for item in (row(t - 1.5, user=3.75), row(t, user=-0.25))])
    assert samples.mean[0, :, CPU] == pytest.approx([1.0] * MOST_STEPS)


def test_it_says_how_many_hosts_it_does_not_draw(stored):
    samples = stored([row(1.0, f"n{i}") for i in range(MOST_HOSTS + 3)])
    assert (len(samples.hosts), samples.omitted) == (MOST_HOSTS, 3)
    assert samples.mean.shape == (MOST_HOSTS, 1, len(QUANTITIES))


def test_reading_counts_as_processor_time_and_refuses_more_hosts_than_a_trial(stored, monkeypatch):
    """A file of an import has up to a gigabyte."""
    rows = [row(t_s, f"h{number}") for t_s in (1.0, 2.0) for number in range(4)]
    with budget.seconds(1e-9), pytest.raises(budget.Exhausted):
        stored(rows)
    monkeypatch.setattr(host_samples, "MAX_HOSTS", 2)
    with pytest.raises(ValueError, match="more hosts"):
        stored(rows)


@pytest.mark.parametrize(
    "text", ["{", '[{"t_s": 1}]', "[1]", CROWDED, '[{"t_s": 1.0, "host"', json.dumps([row(1.0)])[:-20]]
)
def test_it_refuses_a_damaged_file(tmp_path, text):
    file = tmp_path / "samples.json"
    file.write_text(text)
    with pytest.raises(ValueError):  # noqa: PT011 - json's own words or ours
        read_samples(file)


def line(name: str, *means: float | None, samples: int = 1) -> HostLine:
    return HostLine(name, means, [None if m is None else (m / 2, m * 2, samples) for m in means])


def test_it_draws_six_hosts_as_lines_with_prefix_and_gaps():
    lines = [line(f"n{i}", 2e6, None, 1e6) for i in range(6)]
    figure = hosts_over_time([1.0, 2.0, 3.0], lines, quantity="Sent", unit="B/s")
    assert [trace["name"] for trace in figure["data"]] == [f"n{i}" for i in range(6)]
    assert figure["data"][0]["y"] == [2.0, None, 1.0]
    assert figure["layout"]["yaxis"]["title"]["text"] == "Sent (MB/s)"
    assert len({(t["line"]["color"], t["line"]["dash"]) for t in figure["data"]}) == 6
    assert "customdata" not in figure["data"][0]
    checked(figure)


@pytest.mark.parametrize(
    ("limit", "line", "words"),
    [(4e6, 4.0, "link rate 4 MB/s, peak 50 % of it"), (4e9, None, "link rate 4 GB/s, peak 0.05 % of it")],
    ids=["near", "far"],
)
def test_it_draws_the_rate_of_a_link(limit: float, line: float | None, words: str):
    lines = [HostLine("n0", [2e6, 1e6], [(2e6, 2e6, 1), (1e6, 1e6, 1)])]
    figure = hosts_over_time([1.0, 2.0], lines, quantity="Sent", unit="B/s", limit=limit)
    layout = figure["layout"]
    assert [shape["y0"] for shape in layout.get("shapes", ())] == ([] if line is None else [line])
    assert [plain(note["text"]) for note in layout["annotations"]] == [words]
    assert figure["data"][0]["y"] == [2.0, 1.0]
    is_inside = [(note["yanchor"], layout["yaxis"].get("range")) for note in layout["annotations"]]
    assert is_inside == [("bottom", None) if line else ("top", [0, pytest.approx(2.3)])]
    checked(figure)


@pytest.fixture
def trial(submit, run) -> Trial:
    """A finished trial with samples of two hosts."""
    experiment = submit(repetitions=1)
    run()
    trial = experiment.trials.get(configuration__hosts=2)
    directory = trial_directory(trial)
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "samples.json"
    file.write_text(json.dumps([row(t, host) for t in (1.0, 2.0) for host in ("n1", "n2")]))
    Artifact.describe(trial.pk, "samples", file).save()
    return trial


def panel(page, trial: Trial) -> str:
    return page.get(reverse("trial-hosts", args=[trial.pk])).content.decode()


def test_it_fetches_the_panel_of_a_trial(page, trial):
    assert f'hx-get="{reverse("trial-hosts", args=[trial.pk])}"' in page.get(trial.get_absolute_url()).content.decode()
    html = panel(page, trial)
    assert re.findall(r'data-view="[^"]+" aria-pressed="\w+">([^<]+)<', html) == [
        *("CPU", "System", "Run queue", "Memory", "Sent", "Received")
    ]
    figure = json.loads(re.search(r'id="figure-hosts-1"\s*>(.+?)</script>', html)[1])
    assert [(trace["name"], trace["y"]) for trace in figure["data"]] == [("n1", [75.0, 75.0]), ("n2", [75.0, 75.0])]
    assert figure["layout"]["yaxis"]["title"]["text"] == "CPU use of one core (%)"


def test_a_step_of_the_map_leads_to_the_packets_of_its_time(page, trial):
    rows = [row(t, f"n{host}") for t in (1.0, 2.0, 3.0) for host in range(MOST_SERIES + 1)]
    factories.store_again(trial.artifacts.get(kind="samples"), json.dumps(rows).encode())
    captured(trial, began_s=1001.5)
    assert '"leads"' not in panel(page, trial)  # by which clock the samples began is not known
    rows[0]["began_s"] = 1000.0
    factories.store_again(trial.artifacts.get(kind="samples"), json.dumps(rows).encode())
    html = panel(page, trial)
    for view in ("1", "3"):
        (heat,) = json.loads(re.search(rf'id="figure-hosts-{view}"\s*>(.+?)</script>', html)[1])["data"]
        assert heat["leads"] == f"{trial.get_absolute_url()}?tab=packets&from_s=*&until_s=*"
        assert [[float(word) for word in words] for words in heat["columns"]] == [[], [0, 0.5], [0.5, 1.5]]


def test_a_panel_without_counters_leads_to_the_samples_that_exist(page, trial):
    def links() -> list[str]:
        html = page.get(reverse("trial-hosts", args=[trial.pk]), {"of": "counters"}).content.decode()
        return re.findall(r'href="(\?tab=\w+)"', html)

    assert links() == ["?tab=time"]
    trial.artifacts.get(kind="samples").delete()
    assert links() == []


def test_it_shows_drops_where_there_were_any(page, trial):
    factories.store_again(trial.artifacts.get(kind="samples"), json.dumps([row(1.0, drops=4)]).encode())
    assert ">Dropped</button>" in panel(page, trial)


def test_it_shows_the_samples_of_a_failed_trial_where_they_were_kept(page, trial):
    Trial.objects.filter(pk=trial.pk).update(state="failed")
    address = reverse("trial-hosts", args=[trial.pk])
    assert address in page.get(trial.get_absolute_url()).content.decode()
    trial.artifacts.all().delete()
    assert address not in page.get(trial.get_absolute_url()).content.decode()
