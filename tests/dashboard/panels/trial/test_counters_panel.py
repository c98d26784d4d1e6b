"""Counters on a trial's page: networks, energy, hosts, absent sources, series."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from dashboard.panels.trial.counters import counters_panel, rate_limits
from dashboard.panels.trial.host_samples import samples_of
from experiments.common.counter_fixes import OPEN_RAPL
from experiments.files import COUNTERS_NAME, trial_directory, write_analysis
from experiments.models import Artifact, Trial
from tests.dashboard.panels.trial.samples import row as sample_row
from tests.experiments import factories
from tests.words import plain


def value(total, amount, **fields):
    base = {"name": total, "total": total, "device": "", "seconds": 10.0, "peak": 0.0, "limit": 0.0}
    return {**base, "value": amount, **fields}


def ready(title, *rows):
    return {"state": "ready", "title": title, "details": "", "missing": {}, "values": list(rows)}


@pytest.fixture
def counted(submit, run) -> Trial:
    """A finished trial of two hosts whose power differs; one has no readable fabric."""
    experiment = submit(repetitions=1)
    run()
    trial = experiment.trials.get(configuration__hosts=2)
    absent = {"state": "absent", "title": "Fabric ports", "reason": "no port is active"}
    root_only = {
        "state": "absent",
        "title": "RAPL 2",
        "reason": "readable by root only",
        "fix": OPEN_RAPL,
        "guide": "let-users-read-rapl",
    }
    hosts = {
        host: {
            "rapl": ready("RAPL", value("package_j", joules), value("dram_j", joules / 10)),
            "ethernet": ready("Ethernet", value("ethernet_sent_bytes", 1000.0, device="eth0", peak=5.0, limit=10.0)),
            "ports": absent,
            "other": root_only,
        }
        for host, joules in (("n1", 100.0), ("n2", 300.0))
    }
    directory = trial_directory(trial)
    directory.mkdir(parents=True, exist_ok=True)
    write_analysis(directory / COUNTERS_NAME, hosts)
    Artifact.describe(trial.pk, "other", directory / COUNTERS_NAME).save()
    samples = [sample_row(1.0, host, package_W=watts) for host, watts in (("n1", 10.0), ("n2", 30.0))]
    samples += [sample_row(2.0, "n1", package_W=12.0), sample_row(2.0, "n2")]
    factories.stored_file(trial, "samples.json", json.dumps(samples).encode(), kind="samples").save()
    values = {
        "energy_j": 440.0,
        "energy_package_j": 400.0,
        "energy_per_result_j": 2.2,
        "ethernet_mpi_share": 0.4,
        "memory_mpi_share": 0.6,
        "mpi_sent_bytes": 2e6,
        "mpi_between_hosts_bytes": 8e5,
        "networks_per_mpi_byte": 1.03,
        "nfs_read_bytes": 7.0,
    }
    for name, amount in values.items():
        trial.measurements.create(metric=name, value=amount, scope="all")
    return trial


def test_panel_sums_devices_and_compares_hosts(counted):
    panel = counters_panel(counted)
    assert panel is not None
    assert [(row["name"], row["share"]) for row in panel["networks"]] == [("Shared memory", 0.6), ("eth0", 0.4)]
    assert (panel["networks"][1]["sent"], panel["networks"][1]["peak"]) == (2000, 0.5)
    assert [(row["id"], row["joules"], row["watts"]) for row in panel["energy"]] == [
        ("energy_j", 440, 44),
        ("energy_package_j", 400, 40),
    ]
    assert panel["per_result"] == 2.2
    assert panel["by_host"] == [("n2", 33), ("n1", 11)]
    assert [row["id"] for row in panel["others"]] == [
        *("memory_mpi_share", "mpi_between_hosts_bytes", "networks_per_mpi_byte", "nfs_read_bytes")
    ]
    assert panel["busiest"] == {"host": "n1", "device": "eth0", "peak": 5.0, "limit": 10.0}
    assert [(row["title"], row["on"]) for row in panel["absent"]] == [("RAPL 2", ""), ("Fabric ports", "")]
    assert (panel["ready"], panel["sources"]) == (2, 4)


def test_charts_know_the_rate_of_links_that_all_hosts_have(counted: Trial) -> None:
    assert rate_limits(counted) == {"ethernet_tx_Bps": 10.0}
    file = trial_directory(counted) / COUNTERS_NAME
    two = [value("ethernet_sent_bytes", 1.0, device=device, limit=10.0) for device in ("eth0", "eth1")]
    write_analysis(file, {"n1": {"ethernet": ready("Ethernet", *two)}, "n2": {"ethernet": ready("Ethernet", two[0])}})
    counted.artifacts.filter(name=COUNTERS_NAME).delete()
    Artifact.describe(counted.pk, "other", file).save()
    assert rate_limits(counted) == {}, "one host has two interfaces"


def test_panel_states_what_crossed_each_network_and_checks_it(counted):
    assert words_of(counted) == (
        "800 kB of the 2 MB that ranks sent each other went over eth0; the rest stayed in the hosts.",
        "Calls requested 800 kB between hosts, ports and interfaces sent 824 kB (+3 %): headers explain up to 10 % more.",
    )
    counted.measurements.filter(metric="networks_per_mpi_byte").update(value=5949.0)
    assert "(5 949 times as much): collectives, files or other programs" in words_of(counted)[1]
    counted.measurements.filter(metric="networks_per_mpi_byte").update(value=0.25)
    counted.measurements.filter(metric="ethernet_mpi_share").delete()
    counted.measurements.create(metric="payload_bytes", value=1e5, scope="mpi")
    assert words_of(counted) == (
        "800 kB of the 2 MB that ranks sent each other went over a network without counters; the rest stayed in the hosts.",
        "Calls requested 800 kB between hosts, ports and interfaces sent 200 kB (−75 %): "
        "a network without counters carried the rest. Recorded packets carried 100 kB.",
    )
    counted.measurements.filter(metric="memory_mpi_share").update(value=1.0)
    assert words_of(counted)[0] == "All 2 MB that ranks sent each other stayed in the hosts."


def words_of(trial):
    panel = counters_panel(trial)
    return plain(panel["verdict"]), plain(panel["cross_check"])


def store(trial: Trial, counted) -> None:
    """Replace the reports of a trial's hosts."""
    file = trial_directory(trial) / COUNTERS_NAME
    write_analysis(file, counted)
    trial.artifacts.filter(name=COUNTERS_NAME).delete()
    Artifact.describe(trial.pk, "other", file).save()


def test_panel_of_virtual_hosts_names_their_machine_and_links(counted: Trial) -> None:
    counted.measurements.filter(metric__in=("ethernet_mpi_share", "networks_per_mpi_byte")).delete()
    store(counted, {"vm": {"ports": {"state": "absent", "title": "Fabric ports", "reason": "no port is active"}}})
    panel = counters_panel(counted)
    assert panel is not None
    assert (panel["hosts"], panel["ready"]) == ("the machine of 2 virtual hosts", 0)
    assert "between virtual hosts of one machine" in panel["verdict"]


def test_panel_names_no_network_while_the_counters_of_one_are_lost(counted: Trial) -> None:
    counted.measurements.filter(metric__in=("ethernet_mpi_share", "networks_per_mpi_byte")).delete()
    lost = value("fabric_sent_bytes", 0.0, device="mlx5_0/1") | {"absent": "the counter is stuck"}
    del lost["value"], lost["peak"], lost["limit"]
    for rows, way in (((lost,), "networks whose counters are not complete"), ((), "a network without counters")):
        store(counted, {host: {"ports": ready("Fabric ports", *rows)} for host in ("n1", "n2")})
        panel = counters_panel(counted)
        assert panel is not None
        assert f"over {way};" in plain(panel["verdict"])
        assert not panel["cross_check"]


def test_power_by_host_is_of_the_meter_that_has_memory(counted: Trial) -> None:
    rapl = ready("RAPL", value("package_j", 100.0))
    cray = ready("Cray", value("package_j", 90.0), value("dram_j", 30.0))
    for meters, watts in (({"rapl": rapl, "cray": cray}, 12), ({"rapl": rapl}, 10), ({"cray": cray}, 12)):
        store(counted, {"n1": meters, "n2": meters})
        panel = counters_panel(counted)
        assert panel is not None
        assert panel["by_host"] == [("n1", watts), ("n2", watts)]


def test_panel_has_the_trust_and_seconds_of_each_meter(counted: Trial) -> None:
    """The watts of a meter are over its own reads; commands read later than files."""
    irdma = value("fabric_sent_bytes", 500.0, device="irdma0/1", trust="estimated")
    mlx5 = value("fabric_sent_bytes", 500.0, device="mlx5_0/1", trust="measured")
    board = value("host_estimated_j", 900.0, seconds=30.0, trust="estimated")
    meters = {"rapl": ready("RAPL", value("package_j", 200.0)), "ipmi": ready("IPMI", board)}
    store(counted, {host: {**meters, "ports": ready("Fabric ports", irdma, mlx5)} for host in ("n1", "n2")})
    counted.measurements.create(metric="energy_host_estimated_j", value=1800.0, scope="all")
    counted.conditions["metric_sources"] = {"RAPL; AMD": {"trust": "estimated", "metrics": ["energy_j"]}}
    panel = counters_panel(counted)
    assert panel is not None
    assert [(row["id"], row["watts"], row["trust"]) for row in panel["energy"]] == [
        ("energy_j", 44, "estimated"),
        ("energy_package_j", 40, "measured"),
        ("energy_host_estimated_j", 60, "estimated"),
    ]
    trusts = {row["name"]: row["trust"] for row in panel["networks"]}
    assert (trusts["irdma0/1"], trusts["mlx5_0/1"]) == ("estimated", "measured")


def test_samples_hold_counters_with_gaps(counted):
    samples = samples_of(counted)
    assert samples.quantities[-1] == "package_W"
    assert samples.mean[0, :, -1].tolist() == [10, 12]
    assert samples.mean[1, 0, -1] == 30
    assert str(samples.mean[1, 1, -1]) == "nan"


def test_page_has_a_tab_of_counters(page, counted):
    response = page.get(f"{counted.get_absolute_url()}?tab=counters")
    assert response.context["tab"] == "counters"
    later = page.get(reverse("trial-hosts", args=[counted.pk]), {"of": "counters"})
    assert [name for name, _ in later.context["views"]] == ["Packages"]


def test_page_without_counters_has_no_tab(page, submit, run):
    experiment = submit(repetitions=1)
    run()
    response = page.get(experiment.trials.first().get_absolute_url())
    assert "counters" not in [name for name, _, _ in response.context["tabs"]]


@pytest.mark.parametrize(
    "hosts",
    [
        {"n1": {"rapl": {**ready("RAPL"), "state": ["ready"]}}},
        {"n1": {"rapl": ready("RAPL", value("package_j", 1.0, seconds=0.0))}},
        {"n1": {"rapl": ready("RAPL", value("package_j", float("inf")))}},
        {"n1": {"rapl": ready("RAPL", {"name": "x", "total": "package_j", "device": "", "seconds": 1.0})}},
        {"n1": {"rapl": {"state": "ready"}}},
        {"n1": []},
        [],
    ],
)
def test_panel_is_absent_if_the_file_is_malformed(counted, hosts):
    counted.artifacts.filter(name=COUNTERS_NAME).delete()
    file = trial_directory(counted) / COUNTERS_NAME
    write_analysis(file, hosts)
    Artifact.describe(counted.pk, "other", file).save()
    assert counters_panel(counted) is None


def test_panel_is_absent_if_the_file_is_a_bomb(counted, monkeypatch):
    assert counters_panel(counted) is not None
    monkeypatch.setattr("experiments.files._MOST_BYTES", 100)
    assert counters_panel(counted) is None


def test_panel_takes_no_power_from_rows_without_value(counted: Trial) -> None:
    """An imported trial may have a metric and no row of it."""
    lost = {"name": "package_j", "total": "package_j", "device": "", "seconds": 0.0, "absent": "it was reset"}
    file = trial_directory(counted) / COUNTERS_NAME
    write_analysis(file, {"n1": {"rapl": ready("RAPL", lost)}})
    counted.artifacts.filter(name=COUNTERS_NAME).delete()
    Artifact.describe(counted.pk, "other", file).save()
    panel = counters_panel(counted)
    assert panel is not None
    assert panel["energy"] == []
