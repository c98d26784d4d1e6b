"""nginx and caddy in front of a site, over TLS: programs of Debian."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

READY_S = 60

NGINX = """
daemon off;
master_process off;
pid {place}/nginx.pid;
error_log {place}/nginx-errors.log;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {place}/body;
  proxy_temp_path {place}/proxy;
  fastcgi_temp_path {place}/fastcgi;
  uwsgi_temp_path {place}/uwsgi;
  scgi_temp_path {place}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {place}/certificate.pem;
    ssl_certificate_key {place}/key.pem;
    location = /rankwire {{ return 301 /rankwire/; }}
    location /rankwire/ {{
      proxy_pass http://127.0.0.1:{behind};
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-Proto $scheme;
      client_max_body_size 9m;
    }}
  }}
}}
"""
"""As docs/how-to/run-behind-a-proxy.md advises: the address is handed on as it came."""

CADDY = """
{{
  admin off
  auto_https disable_redirects
}}
https://localhost:{port} {{
  bind 127.0.0.1
  tls {place}/certificate.pem {place}/key.pem
  redir /rankwire /rankwire/
  handle_path /rankwire/* {{
    reverse_proxy 127.0.0.1:{behind}
  }}
}}
"""
"""Takes the path off before: both must do."""


@contextmanager
def nginx(place: Path, behind: int) -> Iterator[int]:
    program = _program("nginx")
    configuration = place / "nginx.conf"
    argv = [program, "-p", str(place), "-e", str(place / "nginx-errors.log"), "-c", str(configuration)]
    with _run(argv, configuration, NGINX, behind) as port:
        yield port


@contextmanager
def caddy(place: Path, behind: int) -> Iterator[int]:
    configuration = place / "Caddyfile"
    argv = [_program("caddy"), "run", "--config", str(configuration), "--adapter", "caddyfile"]
    with _run(argv, configuration, CADDY, behind) as port:
        yield port


def _program(name: str) -> str:
    found = shutil.which(name, path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"]))
    assert found is not None, f"apt package {name} is missing"
    return found


@contextmanager
def _run(argv: Sequence[str], configuration: Path, text: str, behind: int) -> Iterator[int]:
    """Start it on a free port of the loopback, retrying if the port is taken."""
    place = configuration.parent
    homes = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(place))
    for _ in range(3):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        configuration.write_text(text.format(place=place, port=port, behind=behind))
        with (place / f"{configuration.name}.log").open("ab") as log:
            server = subprocess.Popen(argv, stdout=log, stderr=log, cwd=place, env={**os.environ, **homes})
        try:
            if _listens(port, server):
                yield port
                return
        finally:
            server.kill()
            server.wait()
    raise AssertionError((place / f"{configuration.name}.log").read_text())


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
