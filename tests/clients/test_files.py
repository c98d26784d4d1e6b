"""Files of client and real server: resumed downloads, bundles, imports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from rankwire_client import Client, NotMade, Refused
from rankwire_client.command import main

from dashboard.background.tasks import do
from experiments.models import ApiToken, Artifact, BackgroundTask, Experiment
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("session_directory")
CONTENT = bytes(range(256)) * 2000


@pytest.fixture
def artifact(client: Client) -> Artifact:
    factories.experiment()
    artifact = factories.stored_file(factories.finished(), "host n1.pcapng", CONTENT)
    artifact.save()
    return artifact


def work(_: float) -> None:
    """Run the next background task."""
    task = BackgroundTask.claim_next()
    assert task is not None
    do(task)


def test_a_download_resumes_after_an_interruption(artifact: Artifact, cut: type[Any], tmp_path: Path) -> None:
    transport = cut(2)
    with Client(transport=transport, sleep=lambda _: None) as client:
        target = client.download(artifact.trial_id, artifact.name, tmp_path / "capture")
    assert target.read_bytes() == CONTENT
    half, quarter = len(CONTENT) // 2, len(CONTENT) // 4
    assert transport.ranges == ["", f"bytes={half}-", f"bytes={half + quarter}-"]
    assert list(tmp_path.iterdir()) == [target]


def test_what_arrives_changed_is_not_kept(artifact: Artifact, tmp_path: Path) -> None:
    class Changes(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = super().handle_request(request)
            content = answer.read()
            return httpx.Response(answer.status_code, headers=answer.headers, content=content[:-1] + b"?")

    with Client(transport=Changes()) as client, pytest.raises(NotMade, match="arrived damaged"):
        client.download(artifact.trial_id, artifact.name, tmp_path / "capture")
    assert list(tmp_path.iterdir()) == []


def test_the_command_downloads_all_or_what_is_named(
    artifact: Artifact, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["download", str(artifact.trial_id), "-o", str(tmp_path)]) == 0
    assert (tmp_path / artifact.name).read_bytes() == CONTENT
    assert capsys.readouterr().out == f"{tmp_path / artifact.name}\n"
    assert main(["download", str(artifact.trial_id), "nothing"]) == 2
    assert "has no file nothing; it has host n1.pcapng" in capsys.readouterr().err


def test_a_bundle_comes_and_goes_back_without_doubling_anything(
    client: Client, artifact: Artifact, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client._sleep = work
    bundle = client.bundle(artifact.trial.experiment.slug, tmp_path / "water.zip")
    result = client.import_(bundle, dry_run=True)
    assert (result["kind"], result["arrivals"][0]["trials"]) == ("bundle", 0)
    assert main(["import", str(bundle)]) == 0
    assert capsys.readouterr().out.startswith(f"{artifact.trial.experiment.name}: 0 trials")
    assert Experiment.objects.count() == 1
    (tmp_path / "notes.txt").write_text("x")
    assert main(["import", str(tmp_path / "notes.txt")]) == 2
    (tmp_path / "wrong.yaml").write_text("name: x\n")
    with pytest.raises(Refused):
        client.import_(tmp_path / "wrong.yaml")


@pytest.mark.parametrize("of", ["nowhere", ["t:0"]])
def test_a_bundle_of_nothing_is_refused(client: Client, tmp_path: Path, of: Any) -> None:
    with pytest.raises(Refused):
        client.bundle(of, tmp_path / "bundle.zip")
    assert list(tmp_path.iterdir()) == []


def test_it_reads_reports(client: Client) -> None:
    assert list(client.reports()) == []
    with pytest.raises(Refused, match=r"Not found"):
        client.report(1)


def test_the_token_is_read_from_a_private_file(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, key = ApiToken.issue(factories.person("vera", "viewer"), "file")
    file = tmp_path / "token"
    file.write_text(f"{key}\n")
    file.chmod(0o640)
    monkeypatch.delenv("RANKWIRE_TOKEN")
    monkeypatch.setenv("RANKWIRE_TOKEN_FILE", str(file))
    with pytest.raises(ValueError, match="others can read the token"):
        Client()
    file.chmod(0o600)
    with Client() as own:
        assert list(own.experiments()) == []
    assert main(["status", "nowhere"]) == 2


def test_the_command_ends_with_what_happened(
    client: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(error: type[BaseException]) -> Callable[..., Any]:
        def raised(*_: Any) -> Any:
            raise error

        return raised

    monkeypatch.setattr("rankwire_client.client.time.sleep", lambda _: None)
    monkeypatch.setattr(Client, "experiment", fail(KeyboardInterrupt))
    assert main(["status", "water"]) == 130
    monkeypatch.undo()
    monkeypatch.setenv("RANKWIRE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("RANKWIRE_TOKEN", "rw_x")
    monkeypatch.setattr("rankwire_client.client.ATTEMPTS", 1)
    assert main(["status", "water"]) == 3
    assert "was not reached in 1 attempts" in capsys.readouterr().err
