"""A real Grid Engine on virtual hosts: sge_qmaster and login in n1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.workers.clusters.real_hosts import SshHosts, wait
from tests.workers.clusters.trials import output_of, start_tool

SHIPPED = Path("/usr/share/gridengine")
INSTALLED = Path("/var/lib/gridengine")
BOOTSTRAP = """\
admin_user none
default_domain none
ignore_fqdn true
spooling_method berkeleydb
spooling_lib libspoolb
spooling_params {root}/spooldb
binary_path /usr/sbin
qmaster_spool_dir {root}/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""
ENDLESS = "s_rt h_rt s_cpu h_cpu s_fsize h_fsize s_data h_data s_stack h_stack s_core h_core s_rss h_rss s_vmem h_vmem"
QUEUE = {
    "qname": "short", "seq_no": 0, "load_thresholds": "NONE", "suspend_thresholds": "NONE", "nsuspend": 1,
    "suspend_interval": "00:05:00", "priority": 0, "min_cpu_interval": "00:05:00", "processors": "UNDEFINED",
    "qtype": "BATCH INTERACTIVE", "ckpt_list": "NONE", "pe_list": "whole", "rerun": "FALSE", "slots": 2, "shell": "/bin/sh",
    "prolog": "NONE", "epilog": "NONE", "shell_start_mode": "posix_compliant", "starter_method": "NONE",
    "suspend_method": "NONE", "resume_method": "NONE", "terminate_method": "NONE", "notify": "00:00:60", "owner_list": "NONE",
    "user_lists": "NONE", "xuser_lists": "NONE", "subordinate_list": "NONE", "complex_values": "NONE", "projects": "NONE",
    "xprojects": "NONE", "calendar": "NONE", "initial_state": "default", **dict.fromkeys(ENDLESS.split(), "INFINITY"),
}  # fmt: skip


class GridEngine:
    """Two slots on every host, which jobs take whole."""

    def __init__(self, hosts: SshHosts) -> None:
        self.hosts = hosts
        self.testbed = hosts.testbed
        self.root = hosts.directory / "gridengine"
        self._spool()
        self._start("n1", "/usr/sbin/sge_qmaster")
        wait(lambda: "global" in self.ask("qhost"), "the master answers", self.logs)
        for host in self.testbed.hosts:
            self.ask("qconf", "-ah", host)
            self.ask("qconf", "-as", host)
            self._start(host, "/usr/sbin/sge_execd")
        self._set_up()
        wait(lambda: self.ask("qstat", "-f").count(" lx-") == len(self.testbed.hosts), "all hosts report", self.logs)

    def settings(self, **more: Any) -> dict[str, Any]:
        """Cluster.settings of this Grid Engine, its commands run on n1."""
        ssh = self.hosts.settings()
        login = {"host": "n1", **{name: ssh[name] for name in ("user", "key", "config")}}
        request = {"parallel_environment": "whole", "slots_per_host": 2, "agent": ssh["agent"]}
        return {"login": login, **request, "interface": "eth0", "shared_cores": True, **more}

    def ask(self, *argv: str) -> str:
        """Return the output of one of Grid Engine's commands on n1."""
        return output_of(self.testbed, *self._with_variables(*argv), host="n1")

    def logs(self) -> str:
        return "\n".join(path.read_text()[-1500:] for path in self.root.rglob("messages")) + self.ask("qstat", "-f")

    def _with_variables(self, *argv: str) -> list[str]:
        return ["env", *self.hosts.variables, *argv]

    def _start(self, host: str, daemon: str) -> None:
        start_tool(self.testbed, *self._with_variables("SGE_ND=1", daemon), host=host)

    def _spool(self) -> None:
        """Make the master's database as Debian's script does, with root as user."""
        for directory in ("cell/common", "qmaster/job_scripts", "execd", "spooldb"):
            (self.root / directory).mkdir(parents=True)
        for host in self.testbed.hosts:
            (self.root / f"temporary-{host}").mkdir()
        for name in ("bin", "lib", "util", "utilbin"):
            (self.root / name).symlink_to(INSTALLED / name)
        (self.root / "cell/common/bootstrap").write_text(BOOTSTRAP.format(root=self.root))
        (self.root / "cell/common/act_qmaster").write_text("n1\n")
        changed = {"execd_spool_dir": self.root / "execd", "min_uid": 0, "min_gid": 0, "mailer": "/bin/true"}
        lines = (SHIPPED / "default-configuration").read_text().splitlines()
        configuration = self.root / "configuration"
        configuration.write_text(
            "".join(
                f"{line.split()[0]} {changed.get(line.split()[0], line.partition(' ')[2].strip())}\n"
                for line in lines
                if line and not line.startswith("#")
            )
        )
        tools = "/usr/lib/gridengine"
        self.ask(f"{tools}/spoolinit", "berkeleydb", "libspoolb", str(self.root / "spooldb"), "init")
        resources = SHIPPED / "util/resources"
        for what, source in (
            ("configuration", configuration),
            ("complexes", resources / "centry"),
            ("usersets", resources / "usersets"),
            ("managers", "root"),
        ):
            self.ask(f"{tools}/spooldefaults", what, str(source))

    def _set_up(self) -> None:
        """Make a parallel environment of whole hosts, a queue and a quick scheduler."""
        environment = (SHIPPED / "util/resources/pe/mpi").read_text()
        self._load("-Ap", environment.replace("mpi\n", "whole\n", 1).replace("$fill_up", "2"))
        apart = "".join(f",[{host}={self.root}/temporary-{host}]" for host in self.testbed.hosts)
        queue = {**QUEUE, "hostlist": " ".join(self.testbed.hosts), "tmpdir": f"{self.root}{apart}"}
        self._load("-Aq", "".join(f"{name} {value}\n" for name, value in queue.items()))
        scheduler = self.ask("qconf", "-ssconf").replace("0:0:15", "0:0:1", 1)
        for name in ("flush_submit_sec", "flush_finish_sec"):
            scheduler = scheduler.replace(f"{name}                  0", f"{name} 1")
        self._load("-Msconf", scheduler)

    def _load(self, option: str, text: str) -> None:
        file = self.root / "to-load"
        file.write_text(text)
        self.ask("qconf", option, str(file))
