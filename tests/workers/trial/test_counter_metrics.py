"""Metrics of a trial from reports of counters: sums, reasons, shares."""

from __future__ import annotations

from typing import Any

import pytest

from workers.trial.counters import CounterMetrics, Provenance, counter_metrics, mpi_shares
from workers.trial.rank_usage import RankUsage

Report = dict[str, Any]


def row(total: str, value: float | None, **fields: Any) -> Report:
    base = {"name": total, "total": total, "device": "", "seconds": 10.0, "peak": 0.0, "limit": 0.0, **fields}
    return base | ({"absent": "it was reset"} if value is None else {"value": value})


def ready(*rows: Report, **missing: str) -> Report:
    return {"state": "ready", "title": "T", "missing": missing, "values": list(rows)}


def absent(reason: str) -> Report:
    return {"state": "absent", "title": "T", "reason": reason}


def metrics(counted: Any, **fields: Any) -> tuple[dict[str, float], dict[str, str]]:
    made = of_counters(counted, **fields)
    return dict(made.values), dict(made.absent)


def of_counters(counted: Any, **fields: Any) -> CounterMetrics:
    return counter_metrics(counted, **{"elapsed_s": 9.0, "rate": None, "tables": None, "usages": (), **fields})


def test_energy_adds_packages_memory_and_used_gpus_of_all_hosts() -> None:
    rapl = ready(row("package_j", 100.0), row("package_j", 50.0), row("dram_j", 20.0), row("core_j", 90.0))
    gpus = ready(
        *(row("gpu_j", 30.0, device="0"), row("gpu_share", 0.5, device="0", peak=0.9)),
        *(row("gpu_j", 7.0, device="1"), row("gpu_share", 0.0, device="1", peak=0.0)),
    )
    values, reasons = metrics({"a": {"rapl": rapl, "nvml": gpus}, "b": {"rapl": rapl, "nvml": gpus}}, rate=4.0)
    assert values["energy_j"] == 2 * (170 + 30)
    assert values["energy_gpu_j"] == 74
    assert values["power_mean_w"] == 40
    assert values["energy_per_result_j"] == 10
    assert values["energy_delay_js"] == 3600
    assert "energy_j" not in reasons


@pytest.mark.parametrize(
    ("gpus", "energy_j", "reason"),
    [
        ((row("gpu_j", None, device="0"), row("gpu_share", 0.5, device="0", peak=0.9)), None, "it was reset"),
        ((row("gpu_j", None, device="0"), row("gpu_share", 0.0, device="0", peak=0.0)), 100.0, ""),
        ((row("gpu_share", 0.5, device="0", peak=0.9),), None, "0 was used and reports no energy"),
        ((row("gpu_j", 30.0, device="0"), row("gpu_share", None, device="0")), 130.0, ""),
    ],
    ids=["lost", "idle and lost", "without a meter", "of unknown use"],
)
def test_energy_is_absent_when_that_of_a_used_gpu_is(
    gpus: tuple[Report, ...], energy_j: float | None, reason: str
) -> None:
    values, reasons = metrics({"a": {"rapl": ready(row("package_j", 100.0)), "nvml": ready(*gpus)}})
    assert values.get("energy_j") == energy_j
    assert reason in reasons.get("energy_j", "")
    assert values["energy_package_j"] == 100.0


def test_gpus_of_a_cray_node_are_judged_by_their_use() -> None:
    cray = ready(row("package_j", 100.0), row("gpu_j", 50.0, device="accel0_energy"))
    nvml = ready(row("gpu_j", 30.0, device="0"), row("gpu_share", 0.0, device="0", peak=0.0))
    assert metrics({"a": {"cray": cray, "nvml": nvml}})[0]["energy_j"] == 100
    assert metrics({"a": {"cray": cray}})[0]["energy_j"] == 150


@pytest.mark.parametrize(
    ("first", "second", "energy_j", "reason"),
    [
        ((row("gpu_share", 0.5, device="0", peak=0.9),), (row("gpu_j", 30.0, device="0"),), 130.0, ""),
        (None, (row("gpu_j", 30.0, device="0"),), 130.0, ""),
        (
            (row("gpu_share", 0.5, device="0", peak=0.9),),
            (row("gpu_share", 0.5, device="card0", peak=0.9),),
            None,
            "T: 0 was used and reports no energy",
        ),
        (None, None, None, "it did not answer after the program's end"),
    ],
    ids=["without a meter", "without an answer", "both without a meter", "both without an answer"],
)
def test_energy_of_gpus_is_that_of_the_source_with_meters(
    first: tuple[Report, ...] | None, second: tuple[Report, ...] | None, energy_j: float | None, reason: str
) -> None:
    gpus = {
        source: {"state": "ready", "title": "T"} if rows is None else ready(*rows)
        for source, rows in (("nvml", first), ("rocm", second))
    }
    values, reasons = metrics({"a": {"rapl": ready(row("package_j", 100.0)), **gpus}})
    assert values.get("energy_j") == energy_j
    assert reason in reasons.get("energy_j", "")


def test_a_total_of_some_hosts_is_absent_with_the_number_of_hosts() -> None:
    values, reasons = metrics(
        {"a": {"rapl": ready(row("package_j", 1.0))}, "b": {"rapl": absent("readable by root only")}}
    )
    assert "energy_j" not in values
    assert reasons["energy_j"] == reasons["energy_package_j"] == "T: 1 of 2 hosts: readable by root only"


def test_a_lost_socket_makes_the_sum_absent() -> None:
    values, reasons = metrics({"a": {"rapl": ready(row("package_j", 1.0), row("package_j", None))}})
    assert "energy_package_j" not in values
    assert reasons["energy_j"] == "T: package_j: it was reset"


def test_memory_of_some_hosts_alone_gives_no_energy() -> None:
    with_memory = ready(row("package_j", 1.0), row("dram_j", 1.0))
    values, reasons = metrics({"a": {"rapl": with_memory}, "b": {"rapl": ready(row("package_j", 1.0))}})
    assert values["energy_package_j"] == 2
    assert "energy_j" not in values
    assert "1 of 2 hosts" in reasons["energy_j"]


def test_energy_is_of_the_meter_that_has_memory_too() -> None:
    """As on nodes of HPE Cray with AMD processors: RAPL has packages alone there."""
    rapl, cray = ready(row("package_j", 61.0)), ready(row("package_j", 60.0), row("dram_j", 6.0))
    hosts = {host: {"rapl": {**rapl, "title": "RAPL"}, "cray": {**cray, "title": "Cray"}} for host in "ab"}
    made = of_counters(hosts)
    assert (made.values["energy_j"], made.values["energy_package_j"], made.values["energy_dram_j"]) == (132, 120, 12)
    assert made.provenance["energy_j"].source == "Cray"
    hosts["b"]["cray"] = absent("this host has no /sys/cray/pm_counters")
    assert (metrics(hosts)[0]["energy_j"], metrics(hosts)[0].get("energy_dram_j")) == (122, None)


PACKAGES: Report = ready(row("package_j", 61.0)) | {"title": "RAPL"}
BOTH: Report = ready(row("package_j", 60.0), row("dram_j", 6.0)) | {"title": "Cray"}
LOST: Report = {"state": "absent", "reason": "it failed", "read_s": 1e-4, "missing": {}}
NO_VALUES: Report = {"state": "ready", "read_s": 1e-4, "missing": {}}
RESET: Report = ready(row("package_j", None), row("dram_j", 6.0))


@pytest.mark.parametrize(
    ("cray", "reason"),
    [
        (LOST, "it failed"),
        (NO_VALUES, "it did not answer after the program's end"),
        (RESET, "package_j: it was reset"),
    ],
)
def test_no_other_meter_replaces_one_that_was_lost(cray: Report, reason: str) -> None:
    """Trials of an experiment would have energies with and without memory."""
    lost = {"rapl": PACKAGES, "cray": {**cray, "title": "Cray"}}
    values, reasons = metrics({"a": {"rapl": PACKAGES, "cray": BOTH}, "b": lost})
    assert not {"energy_j", "energy_package_j", "power_mean_w", "power_host_max_w"} & values.keys()
    assert reasons["energy_j"] == reasons["energy_package_j"] == f"Cray: 1 of 2 hosts: {reason}"
    assert "energy_j" not in metrics({"a": {"rapl": LOST | {"title": "RAPL"}, "cray": BOTH}})[0]


def test_a_lost_meter_that_would_not_be_used_costs_no_energy() -> None:
    assert metrics({"a": {"rapl": BOTH, "cray": LOST | {"title": "Cray"}}})[0]["energy_j"] == 66
    hosts = {"a": {"rapl": PACKAGES, "cray": LOST | {"title": "Cray"}}, "b": {"rapl": PACKAGES}}
    assert metrics(hosts)[0]["energy_j"] == 122


def test_time_waiting_for_storage_alone_gives_no_bytes() -> None:
    usage = RankUsage(0, "a", 1.0, 0.0, 1, 0, 0, 0, None, 0, 1, 0.0, io={"wait_ms": 5})
    values, reasons = metrics({}, usages=[usage])
    assert values == {}
    assert "/proc/self/io" in reasons["io_read_bytes"]


def test_energy_is_as_sure_as_its_least_sure_part() -> None:
    gpus = (
        row("gpu_j", 30.0, device="0", trust="estimated"),
        row("gpu_share", 0.5, device="0", peak=0.9, trust="measured"),
    )
    rapl = {**ready(row("package_j", 100.0, trust="measured")), "title": "RAPL"}
    made = of_counters({"a": {"rapl": rapl, "amdgpu": {**ready(*gpus), "title": "AMD"}}})
    assert made.provenance["energy_j"] == Provenance("RAPL; AMD", "estimated")
    assert made.provenance["power_host_max_w"] == Provenance("RAPL", "measured")
    sources = made.by_source()
    assert sources["AMD"] == {"trust": "estimated", "metrics": ["energy_gpu_j"]}
    assert sources["AMD, measured"] == {"trust": "measured", "metrics": ["gpu_used_share"]}


def test_node_meters_are_no_part_of_the_energy() -> None:
    cray = ready(row("host_j", 500.0), row("package_j", 60.0), row("dram_j", 6.0))
    values, _ = metrics({"a": {"rapl": absent("none"), "cray": cray, "ipmi": ready(row("host_estimated_j", 700.0))}})
    assert (values["energy_j"], values["energy_host_j"], values["energy_host_estimated_j"]) == (66, 500, 700)


def test_the_scheduler_s_account_is_read_on_the_first_host_alone() -> None:
    first = ready(row("job_estimated_j", 900.0, trust="estimated"))
    values, _ = metrics({"a": {"slurm": first}, "b": {"slurm": absent("read on the first host of the job")}})
    assert values["energy_job_estimated_j"] == 900
    values, reasons = metrics({"a": {"slurm": ready(row("job_estimated_j", None))}})
    assert "energy_job_estimated_j" not in values
    assert reasons["energy_job_estimated_j"] == "Energy, job (Slurm): job_estimated_j: it was reset"
    values, reasons = metrics({"a": {"slurm": absent("AcctGatherEnergyType is not set")}})
    assert "energy_job_estimated_j" not in values
    assert reasons["energy_job_estimated_j"] == "Energy, job (Slurm): AcctGatherEnergyType is not set"


def test_ports_give_waits_peaks_and_the_worst_port() -> None:
    sent = row("fabric_sent_bytes", 4000.0, peak=5.0, limit=10.0, device="p1")
    errors = [row("fabric_errors", 2.0, device="p1"), row("fabric_errors", 3.0, device="p1")]
    received = row("fabric_received_bytes", 4000.0, peak=9.0, limit=10.0, device="p1")
    roce = row("fabric_sent_bytes", 9e9, peak=1.0, limit=10.0, device="p2")  # it has no credits to wait for
    waits = row("fabric_wait_ticks", 1000.0, device="p1")
    ports = ready(sent, received, roce, waits, *errors, row("fabric_errors", 4.0, device="p2"))
    values, reasons = metrics({"a": {"ports": ports}})
    assert values["fabric_wait_share"] == 0.5
    assert values["fabric_peak_share"] == 0.9
    assert (values["fabric_errors"], values["fabric_worst_port_errors"]) == (9, 5)
    lacking, reasons = metrics({"a": {"ports": ready(sent, fabric_wait_ticks="p1 does not count port_xmit_wait")}})
    assert "fabric_wait_share" not in lacking
    assert reasons["fabric_wait_share"] == "T: p1 does not count port_xmit_wait"


def test_shares_of_networks_need_bytes_that_cover_the_messages() -> None:
    tables = {"ranks": [{"sent_bytes": sent} for sent in (1000, 0, 0, 0)], "between_hosts_bytes": 400}
    sent_by = {"fabric_mpi_share": 900.0, "ethernet_mpi_share": 100.0}
    shares = {"memory_mpi_share": 0.6, "fabric_mpi_share": 0.36, "ethernet_mpi_share": 0.04}
    assert mpi_shares(tables, sent_by) == pytest.approx({**shares, "mpi_between_hosts_bytes": 400})
    unseen = mpi_shares(tables, {"fabric_mpi_share": None, "ethernet_mpi_share": 100.0})
    assert unseen == {"memory_mpi_share": 0.6, "mpi_between_hosts_bytes": 400}
    assert mpi_shares(None, sent_by) == {}


def test_bytes_of_networks_are_compared_with_those_of_calls() -> None:
    tables = {"ranks": [{"sent_bytes": 1_000_000}, {"sent_bytes": 0}], "between_hosts_bytes": 1_000_000}
    assert mpi_shares(tables, {"fabric_mpi_share": 1_030_000.0})["networks_per_mpi_byte"] == pytest.approx(1.03)
    assert mpi_shares(tables, {"ethernet_mpi_share": 5_000.0})["networks_per_mpi_byte"] == pytest.approx(0.005)
    assert "networks_per_mpi_byte" not in mpi_shares(tables, {"fabric_mpi_share": None})


@pytest.mark.parametrize(
    ("ports", "is_known"),
    [
        (absent("this host has no InfiniBand, RoCE or Omni-Path device"), True),
        (ready(row("fabric_sent_bytes", None, device="p1")), False),
        (ready(fabric_sent_bytes="p1 does not count port_xmit_data"), False),
        ({**absent("the meters failed"), "read_s": 0.001}, False),
    ],
    ids=["no fabric", "a stuck counter", "no counter", "failed in the trial"],
)
def test_shares_need_the_bytes_of_all_networks_of_the_hosts(ports: Report, *, is_known: bool) -> None:
    """Files over Ethernet must not pass for messages over an uncounted fabric."""
    tables = {"ranks": [{"sent_bytes": 1_000_000}, {"sent_bytes": 0}], "between_hosts_bytes": 800_000}
    hosts = {host: {"ports": ports, "ethernet": ready(row("ethernet_sent_bytes", 5e8))} for host in "ab"}
    values, reasons = metrics(hosts, tables=tables)
    assert ("ethernet_mpi_share" in values, "networks_per_mpi_byte" in values) == (is_known, is_known)
    assert values["memory_mpi_share"] == pytest.approx(0.2)
    assert is_known or reasons["ethernet_mpi_share"] == reasons["fabric_sent_bytes"] != ""


def test_every_metric_names_its_source_and_trust() -> None:
    usage = RankUsage(0, "a", 1.0, 0.0, 1, 0, 0, 0, None, 0, 1, 0.0, io={"rchar": 9, "read_bytes": 5})
    estimated = {**ready(row("host_estimated_j", 700.0, trust="estimated")), "title": "IPMI"}
    rapl = {**ready(row("package_j", 60.0, trust="measured")), "title": "RAPL"}
    tables = {"ranks": [{"sent_bytes": 100}, {"sent_bytes": 0}], "between_hosts_bytes": 0}
    made = of_counters({"a": {"rapl": rapl, "ipmi": estimated}}, tables=tables, usages=[usage])
    assert set(made.provenance) == set(made.values)
    assert made.provenance["energy_j"] == Provenance("RAPL", "measured")
    assert made.provenance["energy_host_estimated_j"] == Provenance("IPMI", "estimated")
    assert made.provenance["memory_mpi_share"].trust == "from calls"
    assert made.provenance["io_read_bytes"].source == "/proc/self/io of what started the ranks"
    assert made.by_source()["IPMI"] == {"trust": "estimated", "metrics": ["energy_host_estimated_j"]}


def test_without_counters_every_metric_has_a_reason() -> None:
    values, reasons = metrics({})
    assert values == {}
    assert reasons["energy_j"] == "the counters of the hosts were not read"
