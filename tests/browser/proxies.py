"""nginx and caddy in front of a site, over TLS: programs of Debian."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from config.services.lease import ROOT
from tests.browser.journeys.guide import blocks

READY_S = 60

PAGE = ROOT / "docs" / "how-to" / "run-behind-a-proxy.md"
NGINX = """
daemon off;
master_process off;
pid nginx.pid;
error_log nginx-errors.log;
events { }
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
"""
CADDY = """
{
  admin off
  auto_https disable_redirects
}
"""


def advised(proxy: str) -> str:
    """Return the configuration that the how-to page advises for a proxy."""
    (text,) = (block.text for block in blocks(PAGE) if block.language == proxy)
    return text


@contextmanager
def nginx(directory: Path, behind: int) -> Iterator[int]:
    """Run it as advised: the path is passed as it came."""

    def configured(port: int) -> str:
        files = {"/etc/ssl/lab.pem": f"{directory}/certificate.pem", "/etc/ssl/lab-key.pem": f"{directory}/key.pem"}
        server = replaced(
            advised("nginx"), {"443": f"127.0.0.1:{port}", "127.0.0.1:8000": f"127.0.0.1:{behind}", **files}
        )
        return NGINX + server + "}"

    configuration = directory / "nginx.conf"
    argv = [
        _program("nginx"),
        "-p",
        str(directory),
        "-e",
        str(directory / "nginx-errors.log"),
        "-c",
        str(configuration),
    ]
    with _run(argv, configuration, configured) as port:
        yield port


@contextmanager
def caddy(directory: Path, behind: int) -> Iterator[int]:
    """Run it as advised: the path is removed before."""

    def configured(port: int) -> str:
        name = f"https://localhost:{port} {{\n  bind 127.0.0.1\n  tls {directory}/certificate.pem {directory}/key.pem"
        return CADDY + replaced(advised("caddy"), {"lab.example.org {": name, "127.0.0.1:8000": f"127.0.0.1:{behind}"})

    configuration = directory / "Caddyfile"
    argv = [_program("caddy"), "run", "--config", str(configuration), "--adapter", "caddyfile"]
    with _run(argv, configuration, configured) as port:
        yield port


def replaced(text: str, words: Mapping[str, str]) -> str:
    for word, instead in words.items():
        assert word in text, word
        text = text.replace(word, instead)
    return text


def _program(name: str) -> str:
    program = shutil.which(name, path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"]))
    assert program is not None, f"apt package {name} is missing"
    return program


@contextmanager
def _run(argv: Sequence[str], configuration: Path, configured: Callable[[int], str]) -> Iterator[int]:
    """Start it on a free port of the loopback, retrying if the port is taken."""
    directory = configuration.parent
    homes = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(directory))
    for _ in range(3):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        configuration.write_text(configured(port))
        with (directory / f"{configuration.name}.log").open("ab") as log:
            server = subprocess.Popen(argv, stdout=log, stderr=log, cwd=directory, env={**os.environ, **homes})
        try:
            if _listens(port, server):
                yield port
                return
        finally:
            server.kill()
            server.wait()
    raise AssertionError((directory / f"{configuration.name}.log").read_text())


def _listens(port: int, server: subprocess.Popen[bytes]) -> bool:
    until = time.monotonic() + READY_S
    while time.monotonic() < until and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return server.poll() is None
    return False
