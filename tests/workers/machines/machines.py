"""Machines made of namespaces, with network, name, identity and disk.

A switch is between them. What all of them reach (PostgreSQL, Redis, the store) answers at the address of the switch;
nothing else is shared.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psutil
from django.conf import settings
from django.db import connections

from tests.conftest import SESSION, Services
from tests.s3_server import S3Server
from tests.worker_process import CeleryWorker

SWITCH = "10.231.77.1"
_MOST_SWITCHES = 100_000
_ENTER = """
hostname "$1"
mount --bind "$2" /proc/sys/kernel/random/boot_id
mount -t tmpfs -o size=256m tmpfs "$3"
shift 3
exec "$@"
"""
"""Sets a machine's host name, its identity and its own disk before a program starts."""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=60)


@dataclass
class Machine:
    """One of them, with a Celery worker."""

    name: str
    number: int
    environment: dict[str, str]

    @property
    def _cable(self) -> str:
        return f"rw{os.getpid() % 100_000}{self.name}"

    @property
    def _boot_id(self) -> Path:
        return SESSION / "machines" / self.name

    def build(self, switch: str) -> None:
        self._boot_id.parent.mkdir(parents=True, exist_ok=True)
        self._boot_id.write_text(f"{uuid4()}\n")
        ip("netns", "add", self._cable)
        ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", self._cable)
        ip("link", "set", self._cable, "master", switch, "up")
        for words in ("link set lo up", f"address add 10.231.77.{self.number}/24 dev eth0", "link set eth0 up"):
            ip("-n", self._cable, *words.split())

    def remove(self) -> None:
        # A network stays while a process is in it, and with it the cable, whose name is then taken.
        for words in (("link", "delete", self._cable), ("netns", "delete", self._cable)):
            with suppress(subprocess.CalledProcessError):
                ip(*words)

    def start_worker(self) -> CeleryWorker:
        inside = [
            "ip",
            "netns",
            "exec",
            self._cable,
            "unshare",
            "--mount",
            "--uts",
            "sh",
            "-e",
            "-c",
            _ENTER,
            "machine",
        ]
        inside += [self.name, str(self._boot_id), str(SESSION)]
        self.worker = CeleryWorker(
            log=SESSION / f"machine-{self.name}.log", environment=self.environment, inside=inside
        )
        self.worker.start(concurrency=2)
        return self.worker

    def cut_off(self) -> None:
        """Drop all traffic from and to the machine, silently."""
        ip("link", "set", self._cable, "down")

    def reconnect(self) -> None:
        ip("link", "set", self._cable, "up")


class Forwarder:
    """Hands connections of a port of the switch to a server on loopback."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server((SWITCH, 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                coming, _ = self._listener.accept()
                try:
                    going = socket.create_connection(("127.0.0.1", self._target), timeout=10)
                except OSError:
                    coming.close()
                    continue
                going.settimeout(None)
                for source, target in ((coming, going), (going, coming)):
                    threading.Thread(target=_hand_on, args=(source, target), daemon=True).start()


def _hand_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for item in (source, target):
        with suppress(OSError):
            item.shutdown(socket.SHUT_RDWR)


def _at_switch(url: str, forwarder: Forwarder) -> str:
    parts = urlsplit(url)
    who = parts.netloc.rpartition("@")[0]
    return parts._replace(netloc=f"{who}@{SWITCH}:{forwarder.port}").geturl()


def remove_old_switches() -> None:
    """Remove bridges of killed test runs: their address would be in use."""
    listed = subprocess.run(
        ["ip", "-json", "link", "show", "type", "bridge"], check=True, capture_output=True, timeout=60
    )
    living = {pid % _MOST_SWITCHES for pid in psutil.pids()}
    for link in json.loads(listed.stdout or "[]"):
        result = re.fullmatch(r"rw(\d+)sw", link.get("ifname", ""))
        if result and int(result[1]) not in living:
            ip("link", "delete", link["ifname"])


@contextmanager
def switched(services: Services, store: S3Server, *names: str) -> Iterator[list[Machine]]:
    """Yield machines with these names at one switch, without workers."""
    remove_old_switches()
    switch = f"rw{os.getpid() % _MOST_SWITCHES}sw"
    ip("link", "add", switch, "type", "bridge")
    ip("address", "add", f"{SWITCH}/24", "dev", switch)
    ip("link", "set", switch, "up")
    machines: list[Machine] = []
    forwarders: list[Forwarder] = []
    try:
        database = services.postgres.url.rpartition("/")[0] + f"/{connections['default'].settings_dict['NAME']}"
        addresses = []
        for url in (database, services.redis.url, store.address):
            forwarders.append(Forwarder(urlsplit(url).port or 0))
            addresses.append(_at_switch(url, forwarders[-1]))
        environment = {
            **os.environ,
            **store.variables,
            "DATABASE_URL": f"{addresses[0]}?connect_timeout=3",
            "REDIS_URL": addresses[1],
            "RANKWIRE_STORE_ENDPOINT": f"http://{SWITCH}:{forwarders[2].port}",
            "RANKWIRE_VAR": str(SESSION / "var-of-a-machine"),
            "RANKWIRE_SECRET_KEY": settings.SECRET_KEY,
            "RANKWIRE_FOREIGN_CPU_PERCENT": "100",
            "RANKWIRE_DISK_RESERVE_MIB": "0",  # the disk of a machine has 256 MiB
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        for number, name in enumerate(names, start=11):
            machines.append(Machine(name, number, environment))
            machines[-1].build(switch)
        yield machines
    finally:
        for machine in machines:
            if hasattr(machine, "worker"):
                machine.worker.kill()
            machine.remove()
        for forwarder in forwarders:
            forwarder.close()
        ip("link", "delete", switch)
