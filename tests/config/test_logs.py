"""Logs of the processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from config import supervisor
from config.services.lease import ROOT

PROGRAM = """
import config.settings, logging, structlog
structlog.get_logger("ours").info("trial_ended", trial=7)
secret = "hunter2"
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("theirs").exception("it %s", "failed")
"""


ROUTINE = """
import config.settings, logging, warnings
for name in ("celery.worker.strategy", "celery.app.trace", "celery.beat"):
    for task in ("workers.tasks.sweep", "workers.tasks.work"):
        logging.getLogger(name).info("%(name)s was received", {"name": task})
logging.getLogger("celery.app.trace").error("workers.tasks.sweep raised an error")
for path, status in (("/healthz", "200"), ("/lab/healthz", "200"), ("/healthz", "503"), ("/experiments/", "200")):
    logging.getLogger("gunicorn.access").info("%(U)s %(s)s", {"U": path, "s": status})
"""


REFUSED = """
import config.settings, logging
for logger, level in (("django.request", "warning"), ("django.security.DisallowedHost", "error"), ("django.request", "error")):
    try:
        raise PermissionError("not yours")
    except PermissionError as error:
        getattr(logging.getLogger(logger), level)("refused", exc_info=error)
"""


def run(style: str, program: str = PROGRAM, **variables: str) -> str:
    environment = {**os.environ, "RANKWIRE_LOG_FORMAT": style, **variables}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stderr


def test_it_writes_one_object_for_each_event_for_machines() -> None:
    ours, theirs = (json.loads(line) for line in run("json").splitlines())
    assert (ours["event"], ours["trial"], ours["level"], ours["logger"]) == ("trial_ended", 7, "info", "ours")
    assert theirs["event"] == "it failed"
    assert "ZeroDivisionError" in theirs["exception"]


def test_routine_records_are_dropped_unless_they_are_errors() -> None:
    events = [json.loads(line)["event"] for line in run("json", ROUTINE).splitlines()]
    work = ["workers.tasks.work was received"] * 3
    assert events == [*work, "workers.tasks.sweep raised an error", "/healthz 503", "/experiments/ 200"]
    assert len(run("json", ROUTINE, RANKWIRE_LOG_LEVEL="DEBUG").splitlines()) == 11


def test_it_shows_tracebacks_without_the_values_of_variables() -> None:
    output = run("console")
    assert "ZeroDivisionError" in output
    assert "hunter2" not in output


def test_refused_requests_leave_no_traceback_but_errors_do() -> None:
    records = [json.loads(line) for line in run("json", REFUSED).splitlines()]
    assert ["exception" in record for record in records] == [False, False, True]


def test_the_web_server_writes_objects_too() -> None:
    environment = {**os.environ, "RANKWIRE_LOG_FORMAT": "json", "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    environment |= {"REDIS_URL": "redis://127.0.0.1:1/0", "RANKWIRE_WEB_PROCESSES": "1"}
    command = [sys.executable, "-m", "gunicorn", "--config", "python:config.gunicorn", "--bind", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "config.wsgi:application"], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        events = []
        for line in server.stderr:
            events.append(json.loads(line))
            if "Listening at" in line:
                server.terminate()
    assert {event["logger"] for event in events} >= {"gunicorn.error"}
    assert any(event["event"].startswith("Listening at") for event in events)


FORGED = """
import config.settings, logging, structlog
name = "x\\n2026-11-28T00:00:00Z [info     ] forged \\x1b[2J\\x9b31m\\r"
logging.getLogger("axes").warning("AXES: New login failure by %s", name)
structlog.get_logger("ours").warning("files_not_removed", reason=name)
try:
    raise ValueError(name)
except ValueError:
    logging.getLogger("web").exception("request")
"""


def test_words_of_visitors_are_no_records_and_no_commands_of_a_terminal() -> None:
    lines = run("console", FORGED).splitlines()
    assert [number for number, line in enumerate(lines) if line.startswith("20")] == [0, 2, 3]
    assert all(line.isprintable() for line in lines)


def test_large_logs_move_while_their_programs_write_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "MOST_LOG_BYTES", 10)
    log = tmp_path / "web.log"
    (tmp_path / "gone.log").symlink_to("nowhere")  # as if an administrator removed it meanwhile
    with log.open("ab", buffering=0) as program:  # as config/services/children.py opens it
        for text in (b"the first text", b"the second text", b"the end"):
            program.write(text)
            supervisor.bound_logs(tmp_path)
    assert log.read_bytes() == b"the end"
    assert (tmp_path / "web.log.1").read_bytes() == b"the second text"
