"""script/audit against databases of this machine that speak as OSV's and npm's do."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from config.services.lease import ROOT

pytestmark = pytest.mark.timeout(240)  # the set-up looks at everything first
_OSV = {
    "id": "GHSA-xxxx-yyyy-zzzz",
    "summary": "Pages run scripts of others",
    "affected": [
        {
            "package": {"name": "django", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.0"}]}],
        }
    ],
}
_NPM = {
    "id": 1,
    "url": "https://example.org/1",
    "title": "t",
    "severity": "high",
    "vulnerable_versions": ">=0",
    "cwe": [],
}


class Database(BaseHTTPRequestHandler):
    """Knows a vulnerability of each package of ``vulnerable``."""

    vulnerable: frozenset[str] = frozenset()

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(gzip.decompress(content) if self.headers["Content-Encoding"] == "gzip" else content)
        if self.path == "/osv":
            bad = body["package"]["name"] in self.vulnerable
            self.answer({"vulns": [_OSV]} if bad else {})
        else:
            self.answer({name: [_NPM] for name in body if name in self.vulnerable})

    def do_GET(self) -> None:
        self.answer({"name": self.path[1:].replace("%2f", "/"), "versions": {}, "dist-tags": {}})

    def answer(self, data: object) -> None:
        content = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def database() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Database) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def audit(address: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "OSV_URL": f"{address}/osv",
        "npm_config_registry": f"{address}/",
        "npm_config_cache": "/dev/null",
    }
    return subprocess.run(
        [ROOT / "script" / "audit"], env=environment, capture_output=True, text=True, timeout=200, check=False
    )


@pytest.mark.parametrize(("package", "status"), [("", 0), ("django", 1), ("axe-core", 1)])
def test_audit_fails_for_a_known_vulnerability(
    database: str, monkeypatch: pytest.MonkeyPatch, package: str, status: int
) -> None:
    monkeypatch.setattr(Database, "vulnerable", frozenset({package}))
    done = audit(database)
    assert done.returncode == status, done.stdout + done.stderr
    assert "NOT checked" not in done.stderr
    assert package in done.stdout


def test_audit_reports_that_no_database_answers() -> None:
    done = audit("http://127.0.0.1:9")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("NOT checked") == 2
