"""`script/server`: embedded services, web server and workers."""

from __future__ import annotations

import argparse
import http.client
import ipaddress
import os
import signal
import socket
import sys
import time
from pathlib import Path

import psutil

from config.environment import Environment
from config.services.errors import ServiceError
from config.services.lease import ROOT, Installation, Lease, embedded_services
from config.supervisor import (
    KERNELS,
    Interrupted,
    Program,
    Supervisor,
    background_worker,
    child_environment,
    interrupt_on_stop_signals,
    load,
    load_libraries,
    set_up,
)

READY_DEADLINE_S = 60.0


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    interrupt_on_stop_signals()
    try:
        serve(options.host, options.port, demo=not options.no_demo)
    except Interrupted:
        print("stopped")
    except ServiceError as error:
        print(f"rankwire: {error}", file=sys.stderr)
        return 1
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/server", description="Start Rankwire; Ctrl-C stops it.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument(
        "--port", type=int, default=8000, help="port to listen on, 0 for a free one (default %(default)s)"
    )
    parser.add_argument("--no-demo", action="store_true", help="do not queue the demo experiment on the first start")
    return parser.parse_args(arguments)


def serve(host: str, port: int, *, demo: bool) -> None:
    installation = Installation.of_environment()
    with listen(host, port) as listener, embedded_services(installation, meanwhile=load_libraries) as lease:
        environment = web_environment(installation, lease, host, listener)
        load(environment)
        set_up(environment, *([] if demo else ["--no-demo"]), meanwhile=["config.wsgi", "config.gunicorn"])
        with Supervisor(installation, environment) as supervisor:
            supervisor.start(_web(installation.var, listener))
            load(environment, *KERNELS)  # shared by all processes of the worker
            supervisor.ensure_worker()
            supervisor.start(background_worker(installation.var))
            _await_answer(listener, installation.var)
            print(banner(listener, installation.var), flush=True)
            supervisor.watch(lambda: False)


def listen(host: str, port: int) -> socket.socket:
    """Return the bound socket that gunicorn inherits. Raise ServiceError."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
        listener = socket.socket(family, kind)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ServiceError(
            f"cannot listen on {host} port {port}: {reason}; choose another with --host or --port"
        ) from None
    return listener


def web_environment(installation: Installation, lease: Lease, host: str, listener: socket.socket) -> dict[str, str]:
    """Return the environment; a public `host` allows this machine's names.

    Links begin with the listening address, unless a setting names another.
    """
    environment = child_environment(installation, lease.state)
    settings = Environment.load(ROOT / ".env")
    if "RANKWIRE_ADDRESS" not in settings.model_fields_set:
        environment["RANKWIRE_ADDRESS"] = address_of(listener)
    if not _is_loopback(host):
        allowed = [*settings.RANKWIRE_ALLOWED_HOSTS, *machine_names(host)]
        environment["RANKWIRE_ALLOWED_HOSTS"] = ",".join(dict.fromkeys(allowed))
    return environment


def machine_names(host: str) -> list[str]:
    """Return the names and addresses of this machine if it listens on `host`."""
    addresses = {
        address.address.partition("%")[0]
        for interface in psutil.net_if_addrs().values()
        for address in interface
        if address.family in (socket.AF_INET, socket.AF_INET6)
    }
    literals = sorted(f"[{address}]" if ":" in address else address for address in addresses)
    named = [] if host in ("", "0.0.0.0", "::") else [host]  # noqa: S104 - compared, not bound
    return [*named, socket.gethostname(), socket.getfqdn(), *literals]


def address_of(listener: socket.socket) -> str:
    """Return "http://HOST:PORT", with the host name if it listens on all addresses."""
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def banner(listener: socket.socket, var: Path) -> str:
    prefix = Environment.load(ROOT / ".env").RANKWIRE_PREFIX
    directory = os.path.relpath(var) if var.is_relative_to(ROOT) else str(var)
    return (
        f"Rankwire runs at {address_of(listener)}{prefix}\n"
        f"sign in as admin; the first password is in {directory}/admin-password\n"
        f"logs are in {directory}/log; Ctrl-C stops everything"
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _web(var: Path, listener: socket.socket) -> Program:
    module = ["gunicorn", "--config", "python:config.gunicorn", "config.wsgi:application"]
    module += ["--bind", f"fd://{listener.fileno()}"]
    return Program(
        name="web",
        module=module,
        log=var / "log" / "web.log",
        stop_ladder=[(signal.SIGTERM, 8.0)],
        pass_fds=[listener.fileno()],
    )


def _await_answer(listener: socket.socket, var: Path) -> None:
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    deadline = time.monotonic() + READY_DEADLINE_S
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection(host, port, timeout=READY_DEADLINE_S)
        try:
            connection.request("GET", "/healthz", headers={"Host": "localhost"})
            connection.getresponse()
            return
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
        finally:
            connection.close()
    raise ServiceError(f"the web server does not answer; see {var}/log/web.log")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
