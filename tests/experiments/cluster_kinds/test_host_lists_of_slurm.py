"""Host lists are read as Slurm's own tool reads them, or refused by name."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from experiments.cluster_kinds.hosts import host_names


@pytest.fixture(scope="module")
def slurm_conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("slurm") / "slurm.conf"
    file.write_text("ClusterName=x\nSlurmctldHost=n1\nNodeName=n[1-9] CPUs=2\nPartitionName=short Nodes=ALL\n")
    return file


@pytest.mark.parametrize(
    "written",
    [
        *("n[1-3],n1", "r[1-2]n[01-02]", "n[01-3]", "n[9-11]", "n[1-2][3-4]", "n[001-10]", "a,b[7,9-10],c"),
        *("n[1-2]x[1-3]y[1-2]", "n[1-2]x[1-2]y[1-2]z[1-2]", "r[1-2]-n[01-02]-[5]", "n1,n1", "n[1,1]", "n[1-2],n[2-3]"),
        *("n[0-6/2]", "n[3-1]", "n[x]", "n[-3]", "n[1-3:2]", "n[0-99999]"),
    ],
)
def test_a_list_has_the_hosts_that_scontrol_shows(written: str, slurm_conf: Path) -> None:
    answer = subprocess.run(
        ["scontrol", "show", "hostnames", written],
        env={**os.environ, "SLURM_CONF": str(slurm_conf)}, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    if "Invalid hostlist" not in answer.stdout + answer.stderr:
        assert host_names(written) == answer.stdout.split()
        return
    with pytest.raises(ValueError, match=r"is not a range of hosts|is more than"):
        host_names(written)


def test_a_range_may_have_text_behind_it() -> None:
    assert host_names("n[1-2]-ib") == ["n1-ib", "n2-ib"], "scontrol takes no such list"


@pytest.mark.parametrize("word", ["[1-9999][ ", "n[1-9999,1-9999] ", "n[1-5000][1-5000] ", f"{'n' * 254}[1-9999] "])
def test_no_names_are_made_of_wrong_words(word: str) -> None:
    begun = time.process_time()
    with pytest.raises(ValueError, match=r"is not a range|is more than|is longer than|are more than"):
        host_names(word * (60_000 // len(word)))
    assert time.process_time() - begun < 0.5


def test_wrong_words_without_end_are_not_all_read() -> None:
    with pytest.raises(ValueError, match="are more than 10000 hosts"):
        host_names("[], " * 10_001)
