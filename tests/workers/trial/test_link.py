"""The network as a parameter: its certificate, and wrong networks."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pytest

from experiments.models import State, Trial
from tests.config.processes import called
from workers.testbed import kept_certificate, verdict
from workers.trial import pipeline

GOOD = "print('answer 42')"
# Rank 0 ends only when rank 1 does, long after the test has cut the wire between them.
LONG = "import time; print('answer 42', flush=True); time.sleep(60)"
WIDE_AREA = {"topology": "two sites", "bandwidth": "300 Mbit/s", "delay": "2 ms"}
TWO_HOSTS = {"hosts": 2}

RunAll = Callable[..., list[Trial]]


@pytest.fixture(autouse=True)
def _workload(script_workload: object) -> None:
    """Every test here runs scripts."""


def test_it_keeps_one_certificate_for_all_trials_on_the_same_link(run_all: RunAll) -> None:
    request = {"parameters": {**TWO_HOSTS, "script": GOOD}, "certificate": "degrade"}
    first, second = run_all(workload="script", link=WIDE_AREA, repetitions=2, **request)
    assert first.state == second.state == State.FINISHED, first.message
    assert first.certificate == second.certificate
    assert first.certificate["kept"], first.certificate["reasons"]
    request = {row["quantity"]: row["asked"] for row in first.certificate["rows"]}
    assert (request["bandwidth"], request["delay"], request["loss"], request["path MTU"]) == (3e8, 0.002, 0.0, 1500)
    assert "tbf" in first.conditions["back_end"]
    assert first.conditions["link_asked"].startswith("two sites, 300 Mbit/s, 2 ms delay")


def test_certificate_is_kept_between_experiments(run_all: RunAll, monkeypatch: pytest.MonkeyPatch) -> None:
    request = {"parameters": {**TWO_HOSTS, "script": GOOD}, "certificate": "degrade", "link": WIDE_AREA}

    def certificate_of(**fields: object) -> dict[str, Any]:
        (trial,) = run_all(workload="script", **{**request, **fields})
        assert trial.state == State.FINISHED, trial.message
        assert trial.certificate is not None
        return trial.certificate

    monkeypatch.setattr(kept_certificate, "busy_share", lambda: 0.2)
    first = certificate_of()
    assert first["kept"], first["reasons"]
    assert first == certificate_of()
    monkeypatch.setattr(kept_certificate, "busy_share", lambda: 0.31)
    busier = certificate_of()
    assert (busier["made_on"], busier["busy_share"]) == (first["made_on"], 0.31)
    other = certificate_of(link={**WIDE_AREA, "delay": "3 ms"})
    assert other["made_on"] != first["made_on"]
    monkeypatch.setattr(kept_certificate, "_code", lambda: "a later version")
    assert certificate_of()["made_on"] not in (first["made_on"], other["made_on"])


def test_certificate_is_measured_again_after_a_day() -> None:
    now = datetime.now(UTC)
    stored = {"measured_at": now.isoformat(), "busy_share": 0.5}
    assert kept_certificate.still_holds(stored, 0.6)
    assert not kept_certificate.still_holds(stored, 0.65)
    assert not kept_certificate.still_holds({**stored, "measured_at": (now - timedelta(days=1.1)).isoformat()}, 0.0)
    assert not kept_certificate.still_holds({**stored, "measured_at": (now + timedelta(hours=1)).isoformat()}, 0.0)


def test_a_link_outside_its_tolerance_degrades_the_trial_with_the_reason(
    run_all: RunAll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict, "BANDWIDTH_TOLERANCE", -1.0)
    request = {"parameters": {**TWO_HOSTS, "script": GOOD}, "certificate": "degrade"}
    (trial,) = run_all(workload="script", link={"bandwidth": "50 Mbit/s"}, **request)
    assert trial.state == State.FINISHED, trial.message
    assert trial.trust == "degraded"
    assert "the bandwidth from n1 to n2 is" in trial.trust_reasons[0]


def test_an_experiment_can_refuse_links_that_are_not_as_asked(run_all: RunAll, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "DELAY_TOLERANCE_S", -1.0)
    monkeypatch.setattr(verdict, "DELAY_TOLERANCE", -1.0)
    (trial,) = run_all(workload="script", parameters={**TWO_HOSTS, "script": GOOD}, certificate="require")
    assert trial.state == State.FAILED
    assert trial.message.startswith("The link is not as requested: ")
    assert "the delay from n1 to n2 is" in trial.message  # beside load the bandwidth may miss its tolerance, too
    assert trial.certificate["kept"] is False


def test_a_link_can_be_left_unmeasured(run_all: RunAll) -> None:
    (trial,) = run_all(workload="script", parameters={**TWO_HOSTS, "script": GOOD}, certificate="skip")
    assert trial.state == State.FINISHED, trial.message
    assert trial.certificate is None


def test_an_emulator_killed_in_mid_trial_fails_it(run_all: RunAll, monkeypatch: pytest.MonkeyPatch) -> None:
    started = pipeline.TrialRun._watch

    def kill_then_watch(run: object, session: object, *watched: object) -> object:
        agent = psutil.Process(session.agent.pid)  # type: ignore[attr-defined]
        (emulator,) = called(agent.children(recursive=True), "relay.py")
        emulator.kill()
        return started(run, session, *watched)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline.TrialRun, "_watch", kill_then_watch)
    began = time.monotonic()
    (trial,) = run_all(workload="script", parameters={**TWO_HOSTS, "script": LONG}, link=WIDE_AREA, certificate="skip")
    assert trial.state == State.FAILED
    assert "The network emulator relay (killed by signal 9) ended" in trial.message
    assert time.monotonic() - began < 50, "it waited for the program instead of the wire"
