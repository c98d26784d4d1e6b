"""Clusters of virtual hosts with an sshd each, and a Slurm on them.

The worker's ssh reaches them as it would a cluster behind a gateway: with a ProxyCommand that enters the network of n1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.workers.clusters.trials import output_of, start_tool
from workers.launchers import Session

RELAY = Path(__file__).parent / "relay.py"
LIMIT_S = 60.0
GRID_ENGINE_PORTS = {"SGE_QMASTER_PORT": "6444", "SGE_EXECD_PORT": "6445"}
SLURM_CONF = """\
ClusterName=rankwire
SlurmctldHost=n1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
SchedulerType=sched/backfill
{parts}
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=60
SlurmdTimeout=60
KillWait=2
MinJobAge=300
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
TmpFS={directory}/tmp-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd-%n.log
NodeName={hosts} {cores} State=UNKNOWN
PartitionName=short Nodes=ALL Default=YES MaxTime=10 MaxNodes=4 State=UP
PartitionName=tiny Nodes=n1 MaxTime=1 State=UP
"""

WHOLE = {"parts": "TaskPlugin=task/affinity\nSelectType=select/linear", "cores": "CPUs=2"}
FIRST_CORE = {
    "parts": "TaskPlugin=task/cgroup,task/affinity\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core",
    "cores": f"Sockets=1 CoresPerSocket={os.cpu_count()} ThreadsPerCore=1 CoreSpecCount={(os.cpu_count() or 2) - 1}",
}
"""Nodes whose other cores are reserved for the system: jobs have a cpuset of the first one."""
CPUSETS = Path("/sys/fs/cgroup/cpuset")


class SshHosts:
    """sshd in every host of a test-bed, and what a worker needs to reach them."""

    def __init__(self, testbed: Session, directory: Path) -> None:
        self.testbed = testbed
        self.directory = directory
        self.key = self._make_key("worker")
        grid_engine = {"SGE_ROOT": directory / "gridengine", "SGE_CELL": "cell", **GRID_ENGINE_PORTS}
        self.login_script = directory / "login-script"
        """Read by every login, if it exists."""
        variables = {"SLURM_CONF": directory / "slurm.conf", **grid_engine}
        self.variables = [f"{name}={value}" for name, value in variables.items()]
        """Set the environment of logins, in which the commands of schedulers are found."""
        self.config = directory / "ssh_config"
        self.inner_config = directory / "ssh_config_on_hosts"
        self._write_client_files()
        output_of(testbed, "mkdir", "-p", "-m", "755", "/run/sshd")
        for host in testbed.hosts:
            self._start_sshd(host)

    def settings(self, **more: Any) -> dict[str, Any]:
        """Cluster.settings of an ssh cluster of all hosts."""
        return {
            "hosts": list(self.testbed.hosts),
            "user": "root",
            "key": str(self.key),
            "config": str(self.config),
            "agent": ["ssh", "-F", str(self.inner_config), "-i", str(self.key)],
            "interface": "eth0",
            "shared_cores": True,
            "transport": "tcp",
            **more,
        }

    def _make_key(self, name: str) -> Path:
        path = self.directory / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, timeout=60)
        return path

    def _write_client_files(self) -> None:
        shutil.copy(self.key.with_suffix(".pub"), self.directory / "authorized_keys")
        lines = []
        for host in self.testbed.hosts:
            public = self._make_key(f"host-{host}").with_suffix(".pub").read_text().split()
            lines.append(f"{host} {public[0]} {public[1]}")
        (self.directory / "known_hosts").write_text("\n".join(lines) + "\n")
        enter = ["nsenter", f"--target={self.testbed.agent.pid}", "--net", "--mount", "nsenter", "--net=/run/netns/n1"]
        plain = [f"UserKnownHostsFile {self.directory / 'known_hosts'}", "GlobalKnownHostsFile /dev/null"]
        proxy = f"ProxyCommand {' '.join(enter)} {sys.executable} {RELAY} %h %p"
        self.config.write_text("\n".join([*plain, proxy, ""]))
        self.inner_config.write_text("\n".join([*plain, ""]))

    def _start_sshd(self, host: str) -> None:
        config = self.directory / f"sshd-{host}"
        login = (
            f'if [ -f {self.login_script} ]; then . {self.login_script}; fi; exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND"'
        )
        config.write_text(
            f"HostKey {self.directory / f'host-{host}'}\nAuthorizedKeysFile {self.directory / 'authorized_keys'}\n"
            f"PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n"
            f"KbdInteractiveAuthentication no\nSetEnv {' '.join(self.variables)}\nMaxStartups 100\n"
            f"ForceCommand {login}\n"
        )
        start_tool(self.testbed, "/usr/sbin/sshd", "-D", "-e", "-f", str(config), host=host)
        wait(lambda: ":22 " in output_of(self.testbed, "ss", "-Hltn", host=host), f"sshd of {host} listens")


class Slurm:
    """munged, slurmctld in n1 and a slurmd in every host; n1 is the login host too."""

    def __init__(self, hosts: SshHosts, nodes: Mapping[str, str] = WHOLE) -> None:
        self.hosts = hosts
        self.testbed, directory = hosts.testbed, hosts.directory
        self.configuration = directory / "slurm.conf"
        names = self.testbed.hosts
        self.configuration.write_text(
            SLURM_CONF.format(directory=directory, hosts=f"n[1-{len(names)}]" if len(names) > 1 else names[0], **nodes)
        )
        (directory / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nConstrainCores=yes\n")
        for name in ("state", *(f"tmp-{name}" for name in names)):  # PMIx keeps files of each node in its TmpFS
            (directory / name).mkdir()
        key = directory / "munge.key"
        key.write_bytes(b"k" * 64)
        key.chmod(0o400)
        output_of(self.testbed, "mkdir", "-p", "-m", "755", "/run/munge")
        munge = ["--foreground", "--force", f"--key-file={key}", f"--pid-file={directory / 'munged.pid'}"]
        munge += [f"--log-file={directory / 'munged.log'}", f"--seed-file={directory / 'munged.seed'}"]
        start_tool(self.testbed, "/usr/sbin/munged", *munge)
        wait(lambda: "STATUS" in self.ask("sh", "-c", "munge -n | unmunge"), "munged answers")
        self.controller, _ = start_tool(self.testbed, *self._daemon("/usr/sbin/slurmctld", "-D"), host="n1")
        self.daemons = {}
        for host in names:
            # Reads the configuration's NodeAddr by the host's name, which the test-bed's /etc/hosts knows.
            self.daemons[host], _ = start_tool(
                self.testbed, *self._daemon("/usr/sbin/slurmd", "-D", "-N", host), host=host
            )
        idle = " ".join([str(len(names)), "idle"])
        wait(lambda: idle in self.ask("sinfo", "-h", "-p", "short", "-o", "%D %T"), "all nodes are idle", self.logs)

    def settings(self, **more: Any) -> dict[str, Any]:
        """Cluster.settings of this Slurm, its commands run on n1."""
        ssh = self.hosts.settings()
        login = {"host": "n1", **{name: ssh[name] for name in ("user", "key", "config")}}
        shared = {"interface": "eth0", "shared_cores": True, "transport": "tcp"}
        return {"login": login, "partition": "short", **shared, **more}

    def ask(self, *argv: str) -> str:
        """Return the output of one of Slurm's commands on n1."""
        return output_of(self.testbed, "env", f"SLURM_CONF={self.configuration}", *argv, host="n1")

    def logs(self) -> str:
        return "\n".join(path.read_text()[-1500:] for path in self.hosts.directory.glob("*.log")) + self.ask("sinfo")

    def _daemon(self, *argv: str) -> list[str]:
        return ["env", f"SLURM_CONF={self.configuration}", *argv]


def wait(condition: Callable[[], object], what: str, explain: Callable[[], str] = str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {LIMIT_S:g} s in vain until {what}\n{explain()}"
        time.sleep(0.05)
