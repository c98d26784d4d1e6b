"""script/server: the first start, and no process remaining at the end."""

from __future__ import annotations

import json
import re
import signal
import socket
import stat
from collections.abc import Callable
from http.cookiejar import CookieJar
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import psutil
import pytest

from config.server import address_of, machine_names, web_environment
from config.services.lease import Installation
from tests.config.processes import called, process_of, processes_of, wait_for, wait_until_gone
from tests.script.programs import Script

# A start builds what is missing and waits for all of it, and the machine may be busy.
pytestmark = pytest.mark.timeout(240)
READY = "Ctrl-C stops everything"


def address(script: Script) -> str:
    url = re.search(r"http://\S+", script.output)
    assert url, script.output
    return url[0]


def sign_in(base: str, password: str) -> str:
    """The page that follows after signing in as admin."""
    jar = CookieJar()
    browser = build_opener(HTTPCookieProcessor(jar))
    page = browser.open(f"{base}/", timeout=90).read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token, page
    form = {"username": "admin", "password": password, "csrfmiddlewaretoken": token[1], "next": "/"}
    return browser.open(f"{base}/sign-in/", urlencode(form).encode(), timeout=90).read().decode()  # type: ignore[no-any-return]


def test_it_lets_the_admin_sign_in_and_keeps_everything_between_starts(start: Callable[..., Script], var: Path) -> None:
    server = start("server", "--port", "0", "--no-demo")
    server.wait_for_output(READY)
    file = var / "admin-password"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((var / "log").stat().st_mode) == 0o750
    assert called(processes_of(var), "rankwire: background"), "background tasks have a worker of their own"
    password = file.read_text().strip()
    assert password not in server.output
    assert "/sign-out/" in sign_in(address(server), password)
    assert server.end(signal.SIGINT) == 0
    assert not processes_of(var)
    again = start("server", "--port", "0", "--no-demo")
    again.wait_for_output(READY)
    assert file.read_text().strip() == password
    assert "/sign-out/" in sign_in(address(again), password)
    assert again.end(signal.SIGTERM) == 0
    assert not processes_of(var)


def test_it_starts_a_killed_worker_again_and_takes_everything_along_when_it_is_killed_itself(
    start: Callable[..., Script], var: Path
) -> None:
    server = start("server", "--port", "0", "--no-demo")
    server.wait_for_output(READY)
    worker = process_of(var, "rankwire: worker")
    pool = worker.children(recursive=True)
    worker.kill()
    server.wait_for_output("the worker process ended; restarting it", timeout_s=20)
    _, remaining = psutil.wait_procs(pool, timeout=60)
    assert remaining == []
    # Between its fork and its program it is called otherwise.
    wait_for(lambda: any(p.pid != worker.pid for p in called(processes_of(var), "rankwire: worker")))
    server.end(signal.SIGKILL)
    wait_until_gone(var, timeout_s=30)


def test_it_shares_services_and_worker_with_a_second_one(start: Callable[..., Script], var: Path) -> None:
    first, second = (start("server", "--port", "0", "--no-demo") for _ in range(2))
    for server in (first, second):
        server.wait_for_output(READY)
    assert address(first) != address(second)
    assert process_of(var, "rankwire: worker")
    assert process_of(var, "config.services.host_process")
    with_worker = first if process_of(var, "rankwire: worker").ppid() == first.process.pid else second
    other = second if with_worker is first else first
    assert with_worker.end(signal.SIGTERM) == 0
    wait_for(lambda: bool(called(psutil.Process(other.process.pid).children(), "rankwire: worker")))
    assert "csrfmiddlewaretoken" in build_opener().open(address(other), timeout=90).read().decode()


def test_it_says_in_one_line_that_the_port_is_taken(start: Callable[..., Script], var: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = start("server", "--port", str(port))
        assert server.end() == 1
    assert server.output.startswith(f"rankwire: cannot listen on 127.0.0.1 port {port}: Address already in use")
    assert server.output.count("\n") == 1


def test_it_answers_to_the_names_of_this_machine_when_it_is_opened_to_others() -> None:
    names = machine_names("0.0.0.0")
    assert socket.gethostname() in names
    assert "127.0.0.1" in names
    assert "0.0.0.0" not in names
    assert machine_names("lab.example.org")[0] == "lab.example.org"


def test_links_begin_with_the_listening_address_unless_a_setting_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    installation = Installation.of_environment()
    lease: Any = SimpleNamespace(state=SimpleNamespace(database_url="", redis_url=""))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.delenv("RANKWIRE_ADDRESS", raising=False)
        made = web_environment(installation, lease, "127.0.0.1", listener)
        assert made["RANKWIRE_ADDRESS"] == address_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"
        monkeypatch.setenv("RANKWIRE_ADDRESS", "https://lab.example.org")
        made = web_environment(installation, lease, "127.0.0.1", listener)
        assert made["RANKWIRE_ADDRESS"] == "https://lab.example.org"


def test_a_killed_service_host_and_a_killed_beat_are_restarted(start: Callable[..., Script], var: Path) -> None:
    server = start("server", "--port", "0", "--no-demo")
    server.wait_for_output(READY)
    before = {name: process_of(var, name).pid for name in ("rankwire: web", "rankwire: worker")}
    services = (var / "services.json").read_text()
    process_of(var, "rankwire: beat").kill()
    server.wait_for_output("the beat process ended; restarting it", timeout_s=20)
    process_of(var, "config.services.host_process").kill()
    server.wait_for_output("the embedded services ended; restarting them", timeout_s=20)
    health = f"{address(server)}/healthz"
    statuses: set[int] = set()

    def is_alive() -> bool:
        try:
            answer = json.loads(build_opener().open(health, timeout=90).read())
        except HTTPError as error:
            statuses.add(error.code)
            return False
        return bool(answer["ready"] and answer["alive"])

    wait_for(is_alive, timeout_s=90)
    assert statuses <= {503}
    assert (var / "services.json").read_text() == services
    assert {name: process_of(var, name).pid for name in before} == before, (
        "programs that wait for the services keep running"
    )
    assert server.end(signal.SIGTERM) == 0
    assert not processes_of(var)
