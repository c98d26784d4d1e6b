"""Whole hosts: the board's power by IPMI, and the scheduler's account."""

from __future__ import annotations

import os
import re

from workers.hosts.counters.source import ESTIMATED, Absent, AbsentNow, Quantity, Source, output

_WATTS = re.compile(r"Instantaneous power reading:\s+(\d+) Watts")


class Ipmi(Source):
    """Power of the whole host, some seconds late; each read starts a program."""

    key = "ipmi"
    title = "Power, whole host (IPMI)"
    trust = ESTIMATED
    period_s = 10.0

    def probe(self) -> None:
        self._argv = [self.command("ipmitool"), "dcmi", "power", "reading"]
        if not self.read():
            raise Absent("ipmitool reports no power: the board has no DCMI, or only root may ask it")
        self.add(Quantity("board", "host_estimated_j", "W", "power"))
        self.details = "the board's power, some seconds late"

    def read(self) -> dict[str, float]:
        match = _WATTS.search(output(self._argv))
        return {"board": float(match[1])} if match and int(match[1]) else {}  # 0 W: power management is off


class Slurm(Source):
    """Energy of the job, from Slurm's own meters. A job's first host reads it for all."""

    key = "slurm"
    title = "Energy, job (Slurm)"
    trust = ESTIMATED
    is_slow = True

    def probe(self) -> None:
        job = os.environ.get("SLURM_JOB_ID")
        if job is None:
            raise Absent("this is no job of Slurm")
        if os.environ.get("SLURM_NODEID", "0") != "0":
            raise Absent("read on the first host of the job")
        self._argv = [self.command("sacct"), "-j", job, "-X", "-n", "-P", "-o", "ConsumedEnergyRaw"]
        if not self.read():
            raise AbsentNow("Slurm has no energy of this job: AcctGatherEnergyType is not set")
        self.add(Quantity("job", "job_estimated_j", "J"))
        self.details = "all hosts of the job; lags by up to its sampling interval"

    def read(self) -> dict[str, float]:
        words = output(self._argv).split()
        return {"job": float(words[0])} if words and words[0].isdigit() and int(words[0]) else {}


class Papi(Source):
    """Memory bandwidth and floating-point operations, which no source here reads."""

    key = "likwid"
    title = "Memory bandwidth, FLOP/s"

    def probe(self) -> None:
        for name in ("likwid-perfctr", "papi_avail"):
            try:
                self.command(name)
            except Absent:
                continue
            raise Absent(f"{name} is installed; Rankwire does not run it: it takes the counters from the program")
        raise Absent("LIKWID and PAPI were not found")

    def read(self) -> dict[str, float]:
        return {}
