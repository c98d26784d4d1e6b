"""RoCEv2 on the page of a trial: the first sentence states loss and congestion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

import analysis
from dashboard.panels.trial.traffic import roce_of
from experiments.files import ANALYSIS_NAME, trial_directory, write_analysis
from experiments.models import Artifact, Trial
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, roce, tcp
from tests.experiments import factories

SEND_ONLY, WRITE_ONLY, CNP = 0x04, 0x0A, 0x81
BACK = {"source": "10.0.0.2", "destination": "10.0.0.1"}


def analysed(tmp_path: Path, frames: list[bytes]) -> dict[str, Any]:
    path = tmp_path / "roce.pcap"
    path.write_bytes(files.pcap([Frame.whole(10**15 + 20_000 * k, frame) for k, frame in enumerate(frames)]))
    return analysis.analyse(path).to_dict()


def answer(counts: dict[str, Any]) -> str:
    panel = roce_of(counts["roce"], counts["metrics"]["wire_bytes"])
    assert panel is not None
    return str(panel["answer"]).replace("\N{NARROW NO-BREAK SPACE}", " ")


def test_it_says_what_the_network_did(tmp_path: Path) -> None:
    usual = [roce(WRITE_ONLY, k, size=900) for k in range(99)]
    other = [ethernet(ipv4(tcp(payload=bytes(1000))))] * 11
    quiet = answer(analysed(tmp_path, usual))
    assert quiet.startswith("RoCEv2 carries 100 % of all bytes; no packet was retransmitted and no switch asked")
    assert answer(analysed(tmp_path, usual + other)).startswith("RoCEv2 carries 89.")
    lost = answer(analysed(tmp_path, [*usual, roce(WRITE_ONLY, 98, size=900)]))
    assert "1 packet of 100 (1 %) was retransmitted, but no switch asked to slow down" in lost
    slowed = answer(analysed(tmp_path, [*usual, roce(CNP, 0, pair=9, **BACK)]))
    assert slowed.endswith(
        "no packet was retransmitted, but switches asked senders to slow down: the network was congested."
    )
    both = answer(analysed(tmp_path, [*usual, *[roce(WRITE_ONLY, k, size=900, marked=True) for k in (3, 4)]]))
    assert both.endswith(
        "were retransmitted, and switches asked senders to slow down: the network was congested and lost packets."
    )


@pytest.mark.django_db
def test_only_trials_with_roce_have_its_panel(client: Client, tmp_path: Path) -> None:
    factories.experiment()
    trial = factories.finished()
    client.force_login(factories.person("ada", "viewer"))
    for frames, words in (
        ([ethernet(ipv4(tcp(payload=b"x")))] * 9, False),
        ([roce(SEND_ONLY, k) for k in range(9)], True),
    ):
        keep(trial, analysed(tmp_path, frames))
        page = client.get(f"/trials/{trial.pk}/").content.decode()
        assert ('id="roce"' in page) is words
    assert "10.0.0.1 → 10.0.0.2" in page
    assert "#17" in page


def keep(trial: Trial, counts: dict[str, Any]) -> None:
    Artifact.objects.filter(trial=trial, name=ANALYSIS_NAME).delete()
    file = trial_directory(trial) / ANALYSIS_NAME
    file.parent.mkdir(parents=True, exist_ok=True)
    write_analysis(file, counts)
    Artifact.describe(trial.pk, Artifact.Kind.ANALYSIS, file).save()
