"""Harm a whole server and compare what REST reports with the requests.

``python -m benchmarks.campaign --faults 500``. `script/server` runs in a PID namespace of its own, so that every
process of it can be harmed and none other, on a small disk of its own. One line at the end has the figures; the exit
status is 1 if a trial was lost or doubled, or if a process did not come back.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import psutil

ROOT: Final = Path(__file__).resolve().parent.parent
READY_S: Final = 240.0
ALIVE_S: Final = 180.0
"""So long may it take until everything runs again after the last fault."""
LONGEST_STOP_S: Final = 8.0
DISK: Final = "1g"
WEIGHTS: Final = {
    "stop": 0.2,
    "postgres away": 0.01,
    "redis away": 0.01,
    "disk full": 0.02,
    "server ended": 0.03,
    "server killed": 0.02,
}
"""Shares of the faults; the others kill a process."""
OVER: Final = {"finished", "failed", "errored", "lost", "cancelled"}
SPECIFICATION: Final[Mapping[str, Any]] = {
    "workload": "command",
    "parameters": {"program": ["/bin/sleep", "0.5"], "hosts": 1},
    "cluster": "local",
    "certificate": "skip",
    "profile": "none",
    "capture": {"enabled": False},
    "retries": 10,
}


@dataclass
class Server:
    """`script/server` in a namespace of its own, on a disk of its own."""

    var: Path
    port: int
    starts: int = 0
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        self.starts += 1
        inherited = {key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")}
        with (self.var / "campaign.log").open("ab") as log:
            namespace = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
            variables = {
                "RANKWIRE_VAR": str(self.var),
                "RANKWIRE_FOREIGN_CPU_PERCENT": "100",
                "RANKWIRE_DISK_RESERVE_MIB": "32",
            }
            self.process = subprocess.Popen(
                [*namespace, str(ROOT / "script" / "server"), "--port", str(self.port), "--no-demo"],
                env={**inherited, **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def inside(self, words: str = "") -> list[psutil.Process]:
        """Its living processes whose command line holds ``words``."""
        processes = []
        with suppress(psutil.Error):
            for process in psutil.Process(self.process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    if words in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                        processes.append(process)
        return processes

    def end(self, number: signal.Signals) -> None:
        """End the server, with everything in its namespace."""
        for process in self.inside("config.server")[:1]:
            process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(60)
        self.process.kill()
        self.process.wait(60)


class Rest:
    """Questions that are repeated until they are answered."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.token = ""
        self.statuses: collections.Counter[int] = collections.Counter()

    def ask(self, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        headers |= {"Idempotency-Key": secrets.token_hex(16)} if body is not None else {}
        data = None if body is None else json.dumps(body).encode()
        deadline = time.monotonic() + READY_S
        while True:
            try:
                with urlopen(Request(self.address + path, data, headers), timeout=60) as answer:  # noqa: S310 - of loopback
                    return json.loads(answer.read())
            except (URLError, OSError, ValueError) as error:
                status = int(getattr(error, "code", 0))
                self.statuses[status] += 1
                if time.monotonic() > deadline or status not in (0, 500, 502, 503, 504):
                    said = error.read().decode(errors="replace") if isinstance(error, HTTPError) else ""
                    raise SystemExit(f"{path}: {error} {said[:500]}") from None
                time.sleep(1.0)

    def health(self) -> Mapping[str, Any]:
        """Return the answer of the health check, or an empty one."""
        address = f"{self.address}/healthz"
        with suppress(URLError, OSError, ValueError), urlopen(address, timeout=10) as answer:  # noqa: S310 - of loopback
            return dict(json.loads(answer.read()))
        return {}


class Campaign:
    """Faults at random moments while trials wait."""

    def __init__(self, server: Server, chance: random.Random, away_s: Iterable[float]) -> None:
        self.server, self.chance = server, chance
        self.away_s = {"bin/postgres": itertools.cycle(away_s), "redis-server": itertools.cycle(away_s)}
        self.done: collections.Counter[str] = collections.Counter()
        self.faults: Mapping[str, Callable[[], bool]] = {
            "kill": lambda: self._signal(signal.SIGKILL),
            "stop": self._stop,
            "postgres away": lambda: self._away("bin/postgres"),
            "redis away": lambda: self._away("redis-server"),
            "disk full": self._fill_disk,
            "server ended": lambda: self._restart(signal.SIGTERM),
            "server killed": lambda: self._restart(signal.SIGKILL),
        }

    def kinds(self, number: int) -> list[str]:
        """Return the kinds of ``number`` faults in random order, each at least once."""
        rare = [kind for kind, weight in WEIGHTS.items() for _ in range(max(round(number * weight), 1))]
        kinds = rare + ["kill"] * (number - len(rare))
        self.chance.shuffle(kinds)
        return kinds

    def harm(self, kind: str) -> None:
        """Do one fault, as soon as there is something to harm."""
        if self.server.process.poll() is not None:  # as an administrator or systemd starts it again
            self.server.start()
            self.done["server restarted"] += 1
        self.done[kind] += wait_until(self.faults[kind], 30)
        time.sleep(self.chance.uniform(0.0, 2.0))

    def _signal(self, number: signal.Signals) -> bool:
        processes = self.server.inside()
        if not processes:
            return False
        with suppress(psutil.Error):
            self.chance.choice(processes).send_signal(number)
        return True

    def _stop(self) -> bool:
        processes = self.server.inside()
        if not processes:
            return False
        with suppress(psutil.Error):
            stopped = self.chance.choice(processes)
            stopped.suspend()
            time.sleep(self.chance.uniform(0.5, LONGEST_STOP_S))
            stopped.resume()
        return True

    def _away(self, program: str) -> bool:
        """A service is gone, and its host cannot restart it for a while."""
        hosts, services = self.server.inside("config.services.host_process"), self.server.inside(program)
        if not hosts or not services:
            return False
        with suppress(psutil.Error):
            hosts[0].suspend()
            for process in services:
                with suppress(psutil.Error):
                    process.kill()
            time.sleep(next(self.away_s[program]))
            hosts[0].resume()
        return True

    def _fill_disk(self) -> bool:
        filler = self.server.var / "filler"
        with suppress(OSError), filler.open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, max(shutil.disk_usage(self.server.var).free - (1 << 20), 1))
        time.sleep(self.chance.uniform(2.0, 20.0))
        filler.unlink(missing_ok=True)
        return True

    def _restart(self, number: signal.Signals) -> bool:
        self.server.end(number)
        self.server.start()
        return True


def account(rest: Rest, slug: str, repetitions: int) -> dict[str, Any]:
    """Compare the current trials of an experiment with what was requested."""
    trials, path = [], f"/api/v1/trials/?experiment={slug}&limit=100"
    while path:
        page = rest.ask(path)
        trials += page["results"]
        path = str(page["next"] or "").removeprefix(rest.address)
    current = [trial for trial in trials if not trial.get("superseded")]
    repeated = collections.Counter(trial["repetition"] for trial in current)
    return {
        "requested": repetitions,
        "lost": repetitions - len(repeated),
        "doubled": sum(count - 1 for count in repeated.values()),
        "unexplained": sum(t["state"] not in OVER or (t["state"] != "finished" and not t["message"]) for t in current),
        "states": dict(collections.Counter(trial["state"] for trial in current)),
        "attempts": len(trials),
        "messages": dict(collections.Counter(t["message"].partition("\n")[0] for t in trials if t["message"])),
    }


def unfinished(rest: Rest) -> int:
    """Return the queued and running trials at one moment.

    An ended process returns its trial to the queue.
    """
    load = rest.ask("/api/v1/status/")
    return int(load["queued"] + load["running"])


def wait_until(condition: Callable[[], object], limit_s: float) -> bool:
    """Return whether a condition holds in time."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(1.0)
    return True


def run(options: argparse.Namespace, var: Path) -> int:
    server, rest = Server(var, options.port), Rest(options.port)
    server.start()
    try:
        if not wait_until(lambda: rest.health().get("alive"), READY_S):
            raise SystemExit((var / "campaign.log").read_text()[-3000:])
        rest.token = token(server)
        repetitions = options.trials
        slug = rest.ask("/api/v1/experiments/", {**SPECIFICATION, "name": "campaign", "repetitions": repetitions})[
            "slug"
        ]
        rest.ask(f"/api/v1/experiments/{slug}/go-on/", {})  # a trial that a fault ends must not hold the others
        campaign = Campaign(server, random.Random(options.seed), options.away)
        began = time.monotonic()
        for kind in campaign.kinds(options.faults):
            if time.monotonic() - began < options.minutes * 60:
                campaign.harm(kind)
        if server.process.poll() is not None:
            server.start()
        revived = wait_until(lambda: rest.health().get("alive"), ALIVE_S)
        ended = wait_until(lambda: unfinished(rest) == 0, 1800)
        figures = account(rest, slug, repetitions)
        seconds = round(time.monotonic() - began)
        print(f"seed {options.seed}, {seconds} s, faults {dict(campaign.done)}, {figures}, {server.starts} starts, "
              f"alive again: {revived}, all over: {ended}, REST statuses other than 2xx {dict(rest.statuses)}")  # fmt: skip
        return int(
            not (revived and ended and not figures["lost"] and not figures["doubled"] and not figures["unexplained"])
        )
    finally:
        server.end(signal.SIGTERM)


def token(server: Server) -> str:
    """Return a token of the administrator, made inside the namespace."""
    environment = {key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")}
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "api_token", "admin", f"campaign {secrets.token_hex(4)}"],
        env={**environment, "RANKWIRE_VAR": str(server.var), "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    match = re.search(r"rw_[\w-]+", done.stdout)
    if match is None:
        raise SystemExit(f"no token: {done.stdout}{done.stderr}")
    return match[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--minutes", type=float, default=90, help="no fault begins later")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument(
        "--away", type=float, nargs="+", default=[300, 30, 30, 30, 30], help="seconds that a service is away, in turn"
    )
    options = parser.parse_args()
    var = Path(tempfile.mkdtemp(prefix="campaign-", dir=ROOT / "var"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(var)], check=True, timeout=60)
    try:
        return run(options, var)
    finally:
        subprocess.run(["umount", "--lazy", str(var)], check=False, timeout=60)
        var.rmdir()


if __name__ == "__main__":
    sys.exit(main())
