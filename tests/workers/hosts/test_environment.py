"""Environment of a trial: complete, JSON-able, and stable."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any, cast

import pytest

from tests.workers.clusters.trials import PlainLink, output_of
from tests.workers.hosts.trees import write_processors
from workers import launchers
from workers.agent import machine, mpi_files, offloads
from workers.hosts.environment import coalescing, describe, different_hosts, differing_facts
from workers.hosts.processes import Agent
from workers.launchers import Session
from workers.launchers.limits import Limits


def test_it_describes_the_virtual_host_and_not_the_machine(testbed: Session) -> None:
    facts = testbed.environment(Path("lmp"))
    assert facts["kernel"] == platform.release()
    assert facts["mpi"].startswith("mpirun (Open MPI) ")
    assert facts["cpu"]["cores"] == testbed.facts["cores"]
    assert {"smt", "mitigations", "huge_pages", "firmware"} <= facts["machine"].keys()
    interface = facts["interface"]
    assert (interface["name"], interface["driver"], interface["mtu"]) == ("eth0", "veth", 1500)
    assert interface["queueing"][0].startswith("tbf rate 1Gbit burst 77")  # a frame and 50 us of the rate
    assert interface["offloads"]["tcp-segmentation-offload"] == "off"
    expected = output_of(testbed, "sysctl", "-n", "net.ipv4.tcp_congestion_control", host="n1").strip()
    assert facts["tcp"]["net.ipv4.tcp_congestion_control"] == expected
    assert facts["tcp"]["net.ipv4.tcp_no_metrics_save"] == "1"


def test_it_names_the_program_its_package_and_its_hash(testbed: Session) -> None:
    program = testbed.environment(Path("lmp"))["program"]
    assert program["sha256"] == hashlib.sha256(Path(program["path"]).read_bytes()).hexdigest()
    assert program["package"].startswith("lammps ")
    assert testbed.environment(Path("no-such-program"))["program"]["sha256"] is None


def test_it_names_the_script_that_an_interpreter_runs_and_its_commit(tmp_path: Path) -> None:
    script = tmp_path / "bench.py"
    script.write_text("print(1)")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for words in (["init", "-q"], ["add", "bench.py"], ["commit", "-q", "-m", "Measure"]):
        subprocess.run([*git, *words], check=True, timeout=60)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True, timeout=60).stdout
    with launchers.get("local").open(host_count=1, link=PlainLink()) as session:
        facts = session.environment(Path("python3"), ["-u", str(script), "/etc/hosts"])["program"]
        plain = session.environment(Path("cat"), [str(script)])["program"]
    digest = hashlib.sha256(b"print(1)").hexdigest()
    assert facts["script"] == {"path": str(script), "sha256": digest, "git_commit": commit.strip()}
    assert Path(facts["path"]).name.startswith("python3")
    assert "script" not in plain


def test_it_is_equal_on_equal_systems_also_after_the_network_was_built_anew() -> None:
    texts = set()
    for _ in range(2):
        with launchers.get("testbed").open(host_count=1, link=PlainLink()) as session:
            texts |= {json.dumps(session.environment(Path("hostname"))) for _ in range(2)}
    assert len(texts) == 1


def test_it_names_the_mpi_library_of_the_launch_program_in_use(tmp_path: Path) -> None:
    """With several libraries installed, PATH's first need not be in use."""
    expected = tmp_path / "mpirun"
    expected.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "mpirun (Open MPI) $OWN_VERSION"\n')
    expected.chmod(0o755)
    variables = {"PATH": "/usr/bin:/bin", "OWN_VERSION": "4.1.9"}
    assert machine.facts((), str(expected), variables)["mpi"] == "mpirun (Open MPI) 4.1.9"
    assert machine.facts((), "mpirun", variables)["mpi"] != "mpirun (Open MPI) 4.1.9"
    assert machine.facts((), "no-such-mpirun", variables)["mpi"] is None


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/\n", "mpirun (Open MPI) 4.1.4"),
        ("HYDRA build details:\n    Version:                                 4.0.2\n    CC: gcc\n", "Hydra 4.0.2"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.5\n", "Intel(R) MPI Library for Linux* OS, Version 2021.5"),
        ("", None),
    ],
)
def test_every_librarys_version_is_read(said: str, version: str | None) -> None:
    assert machine.read_version(said) == version


def write_system(
    root: Path, *, reserved: int = 8, in_use_beyond: int = 0, mitigation: str = "Mitigation: IBRS"
) -> Path:
    """Write a tree of /sys and /proc; files of one boot are in it too."""
    write_processors(root / "sys/devices/system", sockets=2, numa_nodes=2, cores=2, threads=2)
    pages = "sys/kernel/mm/hugepages/hugepages-2048kB"
    texts = {
        "sys/devices/system/cpu/smt/control": "on",
        "sys/devices/system/cpu/vulnerabilities/spectre_v2": mitigation,
        "sys/devices/system/cpu/vulnerabilities/l1tf": "Not affected",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        f"{pages}/nr_hugepages": str(reserved + in_use_beyond),
        f"{pages}/surplus_hugepages": str(in_use_beyond),
        "sys/class/infiniband/mlx5_0/fw_ver": "20.31.1014",
        "proc/cpuinfo": "processor\t: 0\nmicrocode\t: 0xd0003a5\nprocessor\t: 1\nmicrocode\t: 0xd0003a5",
        "proc/sys/kernel/numa_balancing": "1",
        "proc/sys/kernel/random/boot_id": str(uuid.uuid4()),
        "proc/uptime": f"{time.monotonic()} 1.0",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


def test_system_facts_describe_processors_mitigations_pages_and_firmware(tmp_path: Path) -> None:
    root = write_system(tmp_path)
    assert machine.system_facts(root / "sys", root / "proc") == {
        "sockets": 2,
        "numa_nodes": 4,
        "numa_balancing": "1",
        "smt": "on",
        "microcode": ["0xd0003a5"],
        "mitigations": {"spectre_v2": "Mitigation: IBRS"},
        "huge_pages": {"transparent": "madvise", "2048kB": 8},
        "firmware": {"mlx5_0": "20.31.1014"},
    }
    assert machine.system_facts(tmp_path / "none", tmp_path / "none") == {
        "mitigations": {},
        "huge_pages": {"transparent": ""},
        "firmware": {},
    }


def test_system_facts_are_equal_after_a_restart_and_differ_after_a_change(tmp_path: Path) -> None:
    facts = []
    for name, changes in {
        "first": {},
        "restarted": {"in_use_beyond": 3},
        "pages": {"reserved": 16},
        "kernel": {"mitigation": "Vulnerable"},
    }.items():
        root = write_system(tmp_path / name, **changes)  # type: ignore[arg-type]
        facts.append(machine.system_facts(root / "sys", root / "proc"))
    first, restarted, *changed = facts
    assert restarted == first
    assert first not in changed


def test_it_finds_what_another_host_has_otherwise_or_not_at_all() -> None:
    first = {"kernel": "6.1", "cpu": {"cores": 8, "governor": "performance"}, "libraries": ["a", "b"]}
    assert differing_facts(first, {**first, "cpu": {**first["cpu"]}}) == {}
    other = {"kernel": "6.6", "cpu": {"cores": 8, "governor": None}, "libraries": ["a"], "mpi": "mpirun"}
    assert differing_facts(first, other) == {
        "cpu": {"governor": "none"},
        "kernel": "6.6",
        "libraries": ["a"],
        "mpi": "mpirun",
    }


class CardAgent:
    """An agent of a host whose network card reports a firmware."""

    def __init__(self, firmware: str) -> None:
        self.driver = f"driver: mlx5_core\nversion: 6.8.0\nfirmware-version: {firmware}\n"

    def outputs(self, commands: list[list[str]], host: str | None) -> list[str]:
        return [self.driver if command[:2] == ["ethtool", "-i"] else "" for command in commands]

    def machine(self, *question: object) -> dict[str, Any]:
        return {"machine": {"firmware": {"mlx5_0": "20.31.1014"}}}


def test_describe_adds_the_firmware_of_the_interface() -> None:
    firmware = [
        describe(cast(Agent, CardAgent(version)), None, "eth0", (), "mpirun", {})["machine"]["firmware"]
        for version in ("20.31.1014 (MT_0000000223)", "N/A", "")
    ]
    assert firmware[0] == {"mlx5_0": "20.31.1014", "eth0": "20.31.1014 (MT_0000000223)"}
    assert firmware[1:] == 2 * [{"mlx5_0": "20.31.1014"}]


def test_different_hosts_differ_in_processor_cores_or_kernel() -> None:
    first = {"kernel": "6.1", "cpu": {"model": "EPYC", "cores": 16}, "interface": {"mtu": 1500}}
    assert different_hosts(first) == ""
    assert different_hosts({**first, "other_hosts": {"n2": {"interface": {"mtu": 9000}}}}) == ""
    odd = {f"n{number}": {"kernel": "6.6", "cpu": {"cores": 8}} for number in range(2, 8)}
    odd["n2"] = {"cpu": {"model": "Xeon", "cores": 8}}
    assert different_hosts({**first, "other_hosts": odd}) == (
        "Xeon on n2 (first host: EPYC); 8 cores on n2, n3, n4, n5 and 2 other hosts (first host: 16); "
        "kernel 6.6 on n3, n4, n5, n6 and 1 other host (first host: 6.1)"
    )


def test_it_reports_whether_a_card_adapts_its_interrupts() -> None:
    said = (
        "Coalesce parameters for eth0:\nAdaptive RX: on  TX: off\nstats-block-usecs: n/a\n\nrx-usecs: 3\ntx-usecs: 0\n"
    )
    assert coalescing(said) == {"adaptive-rx": "on", "adaptive-tx": "off", "rx-usecs": "3", "tx-usecs": "0"}
    assert coalescing("Adaptive RX: n/a  TX: n/a\nrx-usecs: n/a\n")["adaptive-tx"] == "n/a"
    assert coalescing("") == {}


def test_facts_start_no_git_in_directories_that_programs_of_trials_write(tmp_path: Path) -> None:
    """Settings of a repository name commands that git runs."""
    marker, script = tmp_path / "marker", tmp_path / "bench.py"
    script.write_text("print(1)")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for words in (
        ["init", "-q"],
        ["add", "bench.py"],
        ["commit", "-q", "-m", "Measure"],
        ["config", "core.fsmonitor", f"touch {marker}; false"],
    ):
        subprocess.run([*git, *words], check=True, timeout=60)
    with launchers.get("local").open(host_count=1, link=PlainLink()) as session:
        hidden = Limits(hidden=(tmp_path,))
        facts = session.environment(Path("python3"), [str(script)], limits=hidden)["program"]
        assert "script" not in facts
        assert session.environment(script, limits=hidden)["program"] is None
    assert not marker.exists()


def test_files_that_never_end_have_no_hash(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"x")
    os.truncate(program, 1 << 42)
    program.chmod(0o755)
    assert machine.program_facts(str(program), "/bin")["sha256"] is None
    assert machine.script_facts(["sh", "/" + "n" * 300]) == {}


def test_files_of_the_kernel_are_no_facts_of_programs_of_root() -> None:
    """The message of the kernel would be awaited for ever; only root may open it."""
    visible = Limits().visible(["python3", "/proc/kmsg", "/etc/hosts"])
    assert visible == ["python3", *([] if os.geteuid() == 0 else ["/proc/kmsg"]), "/etc/hosts"]
    assert mpi_files.loaded_by(["sh", "/proc/kmsg"], {"PATH": "/bin"}, "/") == []


def test_programs_that_print_no_utf_8_are_read() -> None:
    """Names in a program's file and in its repository may have any bytes."""
    printed = ["printf", r"tcp-segmentation-offload: off\n\377"]
    assert machine._output(*printed).endswith("\ufffd")
    assert offloads.Offloads(printed, "eth0", {"PATH": "/usr/bin:/bin"}).switch_off() == ""


def test_it_executes_no_code_of_a_program_that_it_describes(tmp_path: Path) -> None:
    audit, source, program = tmp_path / "audit.so", tmp_path / "program.c", tmp_path / "program"
    source.write_text(
        f'''
int creat(const char *, int);
unsigned la_version(unsigned version) {{ return version; }}
__attribute__((constructor)) static void begin(void) {{ creat("{tmp_path}/executed", 0600); }}
int main(void) {{ return 0; }}
'''
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(audit), str(source)], check=True)
    subprocess.run(["gcc", "-o", str(program), str(source), f"-Wl,--audit={audit}"], check=True)
    (tmp_path / "executed").unlink(missing_ok=True)
    assert machine.program_facts(str(program), os.defpath)["libraries"] == ["libc.so.6"]
    assert not (tmp_path / "executed").exists()
