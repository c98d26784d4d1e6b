"""The real program on the real test-bed: TIP4P water on four hosts, captured."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.workers.clusters.trials import capinfos
from workers.launchers import Job, Session
from workers.trial.rank_usage import read_rank_usage, run_metrics

DATA = Path(__file__).parents[2] / "data"


def test_water_runs_on_four_hosts_over_the_captured_network(
    testbed: Session, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    shutil.copy(DATA / "lammps-in.water", tmp_path / "in.water")
    shutil.copy(DATA / "lammps-water.mol", tmp_path / "water.mol")
    options = ("-in", "in.water", "-var", "n", "4", "-var", "steps", "40", "-log", "none")
    job = make_job(testbed, "lmp", *options)
    with testbed.capture() as capture:
        before = testbed.sample()
        process = testbed.launch(job, stdout=tmp_path / "out", stderr=tmp_path / "err")
        while process.wait(1.0) is None:
            assert process.elapsed_s < 50
        after = testbed.sample()
        report = capture.stop()
        stored = capture.save(tmp_path / "capture.pcapng.zst")
    assert process.returncode == 0, (tmp_path / "err").read_text()
    assert "on 4 procs for 40 steps with 192 atoms" in (tmp_path / "out").read_text()
    assert report.captured == report.on_interface == capinfos(stored.path)[0] > 10_000
    assert report.dropped == 0
    metrics = run_metrics(process.elapsed_s, read_rank_usage(job.report_dir), ranks=4)
    assert 0 < metrics["cpu_s"] < process.elapsed_s * testbed.facts["cores"]
    assert metrics["max_rss_bytes"] > 10_000_000
    sent = [a.tx_packets - b.tx_packets for a, b in zip(after.hosts, before.hosts, strict=True)]
    assert all(packets > 1000 for packets in sent)  # every host took part: nothing went through shared memory
