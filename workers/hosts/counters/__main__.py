"""Print what the counters of this machine report.

``python -m workers.hosts.counters [--root DIR] [--seconds 5] [--json]``
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from workers.hosts.counters.recorder import Recorder
from workers.hosts.counters.source import MEASURED
from workers.hosts.counters.sources import SOURCES


def main(words: list[str]) -> int:
    """Read all sources for some seconds and print them."""
    parser = argparse.ArgumentParser(prog="python -m workers.hosts.counters", description=__doc__.splitlines()[0])
    parser.add_argument("--root", default="/", help="read the trees /sys and /proc below this directory")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    if not Path(options.root).is_dir():
        parser.error(f"--root: {options.root} is no directory")
    if not 0 < options.seconds < float("inf"):
        parser.error("--seconds: at least a moment, such as 5")
    began_s = time.monotonic()
    sources, cost = recorded(options.root, options.seconds)
    if options.json:
        seconds = min(options.seconds, time.monotonic() - began_s)  # Ctrl-C ends early
        report_of = {"kernel": os.uname().release, "sources": sources, "seconds": seconds, "cost": cost}
        sys.stdout.write(json.dumps(report_of, indent=1) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in report(sources, cost))
    return 0


def recorded(root: str, seconds: float) -> tuple[dict[str, Any], dict[str, float]]:
    """Return what every source reported, and the CPU time of reading them.

    A trial's program runs between start and end, beside ``share_of_a_core`` alone.
    """
    before = _of_children()
    recorder = Recorder({"here": root}, networks=True)
    recorder.await_begin()
    began_s = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):
        time.sleep(seconds)
    seconds = time.monotonic() - began_s
    recorder.end()
    deadline_s = time.monotonic() + 5.0
    while not recorder.is_done and time.monotonic() < deadline_s:
        recorder.drain()
        time.sleep(0.01)
    recorder.close()
    os.waitpid(recorder.pid, 0)
    spent_s = _of_children() - before
    reports = recorder.sources["here"]
    return {source.key: reports[source.key] for source in SOURCES if source.key in reports}, {
        "cpu_s": spent_s,
        "start_and_end_s": spent_s - recorder.sampling_s,
        "share_of_a_core": recorder.sampling_s / seconds,
    }


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report(sources: dict[str, Any], cost: dict[str, float]) -> list[str]:
    """Return the lines of the report."""
    lines = []
    for source in sources.values():
        state = source["details"] if source["state"] == "ready" else f"not available: {source.get('reason', '')}"
        lines.append(f"{source['title']}: {state}")
        if source.get("fix"):
            lines.append(f"    fix: {source['fix']}")
        if "read_s" in source:
            rate = "read at begin and end" if source["is_slow"] else "read once a second"
            lines.append(f"    {rate}, {source['read_s'] * 1e3:.2f} ms per read")
        lines += [f"    {total}: {reason}" for total, reason in source.get("missing", {}).items()]
        for value in source.get("values", ()):
            unit = "" if value["unit"] == "1" else f" {value['unit']}"
            trust = "" if value.get("trust") in (None, MEASURED) else f", {value['trust']}"
            said = f"{value['value']:.6g}{unit}{trust}" if "value" in value else f"absent: {value['absent']}"
            lines.append(f"    {value['name']}: {said}")
    lines.append(
        f"Cost: {cost['share_of_a_core']:.2%} of one core, and {cost['start_and_end_s'] * 1e3:.1f} ms of CPU time for"
        " start and end"
    )
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
