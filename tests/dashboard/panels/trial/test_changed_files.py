"""Artifacts changed after their trial are reported, not served or analysed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from experiments.files import ANALYSIS_NAME, read_analysis, trial_directory, write_analysis
from experiments.models import Artifact, Trial

CHANGED = "was changed after its trial ended"


@pytest.fixture
def trial(submit, run) -> Trial:
    """A finished trial with every kind of file that pages read."""
    experiment = submit(repetitions=1)
    run()
    trial = experiment.trials.filter(state="finished").order_by("pk").first()
    directory = trial_directory(trial)
    directory.mkdir(parents=True, exist_ok=True)
    write_analysis(directory / ANALYSIS_NAME, {"series": {"wire_bytes": [1]}})
    (directory / "stdout.txt").write_text("as it was\n")
    (directory / "capture.pcapng").write_bytes(b"as it was")
    (directory / "samples.json").write_text("[]")
    kinds = {ANALYSIS_NAME: "analysis", "stdout.txt": "stdout", "capture.pcapng": "capture", "samples.json": "samples"}
    for name, kind in kinds.items():
        Artifact.describe(trial.pk, kind, directory / name).save()
    return trial


def change(trial: Trial, name: str) -> Path:
    """Another content of the same length and date."""
    file = trial_directory(trial) / name
    status = file.stat()
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    return file


def test_it_is_not_downloaded(page: Client, trial: Trial) -> None:
    addresses = [
        reverse("artifact", args=[trial.pk, "stdout.txt"]),
        f"/api/v1/trials/{trial.pk}/artifacts/stdout.txt/",
    ]
    before = [page.get(address) for address in addresses]
    assert [b"".join(answer.streaming_content) for answer in before] == [b"as it was\n"] * 2
    change(trial, "stdout.txt")
    answers = [page.get(address) for address in addresses]
    assert [answer.status_code for answer in answers] == [409, 409]
    assert all(CHANGED in answer.content.decode() for answer in answers)


def test_a_link_in_its_place_is_not_followed(page: Client, trial: Trial, tmp_path: Path) -> None:
    secret = tmp_path / "secret-key"
    secret.write_text("as it was\n")
    file = trial_directory(trial) / "stdout.txt"
    file.unlink()
    file.symlink_to(secret)
    addresses = [
        reverse("artifact", args=[trial.pk, "stdout.txt"]),
        f"/api/v1/trials/{trial.pk}/artifacts/stdout.txt/",
    ]
    answers = [page.get(address) for address in addresses]
    assert [answer.status_code for answer in answers] == [409, 409]
    assert all("stdout.txt is a symbolic link" in answer.content.decode() for answer in answers)


def test_its_text_is_not_shown_as_the_output(page: Client, trial: Trial) -> None:
    change(trial, "stdout.txt")
    html = page.get(reverse("trial-output", args=[trial.pk])).content.decode()
    assert f"stdout.txt {CHANGED}" in html
    assert "as it was" not in html


def test_its_packets_and_samples_are_not_listed(page: Client, trial: Trial) -> None:
    change(trial, "capture.pcapng")
    change(trial, "samples.json")
    assert CHANGED in page.get(reverse("trial-packets", args=[trial.pk])).content.decode()
    assert CHANGED in page.get(reverse("trial-hosts", args=[trial.pk])).content.decode()


def test_its_analysis_is_not_read(trial: Trial) -> None:
    assert read_analysis(trial) is not None
    change(trial, ANALYSIS_NAME)
    assert read_analysis(trial) is None
