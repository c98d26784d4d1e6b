"""What a trial ran on: complete, JSON-able, and the same when nothing changed."""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path

from tests.workers.clusters.trials import PlainLink, output_of
from workers import launchers
from workers.launchers import Session


def test_it_describes_the_virtual_host_and_not_the_machine(testbed: Session) -> None:
    facts = testbed.environment(Path("lmp"))
    assert facts["kernel"] == platform.release()
    assert facts["mpi"].startswith("mpirun")
    assert facts["cpu"]["cores"] == testbed.facts["cores"]
    interface = facts["interface"]
    assert (interface["name"], interface["driver"], interface["mtu"]) == ("eth0", "veth", 1500)
    assert interface["queueing"][0].startswith("tbf rate 1Gbit burst 15")
    assert interface["offloads"]["tcp-segmentation-offload"] == "off"
    own = output_of(testbed, "sysctl", "-n", "net.ipv4.tcp_congestion_control", host="n1").strip()
    assert facts["tcp"]["net.ipv4.tcp_congestion_control"] == own
    assert facts["tcp"]["net.ipv4.tcp_no_metrics_save"] == "1"


def test_it_names_the_program_its_package_and_its_hash(testbed: Session) -> None:
    program = testbed.environment(Path("lmp"))["program"]
    assert program["sha256"] == hashlib.sha256(Path(program["path"]).read_bytes()).hexdigest()
    assert program["package"].startswith("lammps ")
    assert testbed.environment(Path("no-such-program"))["program"]["sha256"] is None


def test_it_is_equal_on_equal_systems_also_after_the_network_was_built_anew() -> None:
    texts = set()
    for _ in range(2):
        with launchers.get("testbed").open(host_count=1, link=PlainLink()) as session:
            texts |= {json.dumps(session.environment(Path("hostname"))) for _ in range(2)}
    assert len(texts) == 1


def test_the_local_cluster_has_an_environment_too() -> None:
    with launchers.get("local").open(host_count=1, link=PlainLink()) as session:
        facts = session.environment()
    assert facts["interface"]["name"] == "lo"
    assert facts["program"] is None
    assert list(facts) == sorted(facts)
