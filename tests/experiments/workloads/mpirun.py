"""Real runs of a workload: inputs, plain mpirun, parser."""

import subprocess

from experiments.workloads import missing_packages

MPIRUN = (
    *("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"),
    *("--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"),
    *("--mca", "mpi_yield_when_idle", "1"),
)


def run(workload, parameters, directory, *, ranks=2, timeout_s=50):
    """Return what the workload parsed from a run in `directory`."""
    assert missing_packages(workload) == ()
    workload.check(parameters, ranks=ranks)
    for name, text in workload.files(parameters, ranks=ranks).items():
        (directory / name).write_text(text)
    argv = (*MPIRUN, "-np", str(ranks), *workload.command(parameters, ranks=ranks))
    ended = subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    written = {name: (directory / name).read_text() for name in workload.outputs if (directory / name).exists()}
    return workload.parse(ended.stdout, written)
