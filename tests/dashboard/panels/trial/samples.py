"""Stored host samples of a trial, and a capture."""

from __future__ import annotations

from experiments.files import ANALYSIS_NAME, trial_directory, write_analysis
from experiments.models import Artifact, Trial
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.experiments import factories


def captured(trial: Trial, *, began_s: float, after_s: tuple[float, ...] = (0.0,)) -> Artifact:
    """Keep a capture that begins at `began_s` since the epoch."""
    frames = [Frame.whole(round((began_s + after) * 1e9), ethernet(ipv4(tcp(seq=1)))) for after in after_s]
    capture = factories.stored_file(trial, "packets.pcapng", pcapng(frames), kind="capture")
    capture.save()
    directory = trial_directory(trial)
    series = {"wire_bytes": [60], "bin_s": 1.0, "start_s": began_s}
    write_analysis(directory / ANALYSIS_NAME, {"series": series})
    Artifact.describe(trial.pk, "analysis", directory / ANALYSIS_NAME).save()
    return capture


def row(t_s: float, host: str = "n1", user: float = 0.5, **changes: float) -> dict[str, object]:
    """One row as `workers.hosts.sampling.shares` writes it."""
    return {
        "t_s": t_s,
        "host": host,
        "cpu_user_share": user,
        "cpu_system_share": 0.25,
        "memory_bytes": 1000,
        "runnable": 1,
        "rx_Bps": 10.0,
        "tx_Bps": 20.0,
        "rx_pps": 1.0,
        "tx_pps": 2.0,
        "drops": 0,
        **changes,
    }
