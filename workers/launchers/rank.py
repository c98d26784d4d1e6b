"""Run one rank's program and write what it used: `python3 -I -S rank.py REPORT_DIR PROGRAM ARGUMENT...`

Started once per rank by the MPI launcher, so it must start fast: standard library, few imports (json alone would double
its start). CPU time and the rest come from wait4 (getrusage of exactly the program and what it waited for). The largest
resident set is at least this interpreter's own, about 10 MB: Linux carries the parent's mark over execve.
"""

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import resource

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
# Open MPI, then MPICH and Intel MPI, then Slurm's srun
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
PR_SET_PDEATHSIG = 1
NOT_STARTED = 127


def main(report_dir: str, argv: list[str]) -> int:
    """Exit as the program exits, by the same signal if one ended it."""
    rank = next((os.environ[name] for name in RANK_VARIABLES if name in os.environ), "0")
    launcher = os.getppid()
    started_ns = time.monotonic_ns()
    started_at = time.time()
    # A signal between the start and the handlers would end us and leave the program alone.
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    try:
        pid = os.posix_spawnp(argv[0], argv, os.environ, setsigmask=())
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        return NOT_STARTED
    for number in FORWARDED:
        signal.signal(number, lambda received, _frame: pass_on(pid, received))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    die_with(launcher, pid)
    _pid, status, usage = os.wait4(pid, 0)
    ended_ns = time.monotonic_ns()
    for number in FORWARDED:  # a launcher that asks twice must not cost the report
        signal.signal(number, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(status)
    write(report_dir, rank, code, usage, (started_ns, ended_ns, started_at))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    return code


def pass_on(pid: int, number: int) -> None:
    """Send a signal to the program, which may have ended in this moment."""
    try:  # noqa: SIM105 - importing contextlib would cost every rank its time
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def die_with(launcher: int, pid: int) -> None:
    """If the launcher is killed, end the program too: SIGTERM comes to us then and is passed on."""
    import ctypes  # after the start: 3 ms that no rank should wait for

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != launcher:
        pass_on(pid, signal.SIGTERM)


def write(
    report_dir: str, rank: str, code: int, usage: "resource.struct_rusage", times: tuple[int, int, float]
) -> None:
    """One JSON object per rank, complete or not there at all."""
    started_ns, ended_ns, started_at = times
    fields = {
        "rank": int(rank),
        "user_s": usage.ru_utime,
        "system_s": usage.ru_stime,
        "max_rss_bytes": usage.ru_maxrss * 1024,
        "voluntary_switches": usage.ru_nvcsw,
        "involuntary_switches": usage.ru_nivcsw,
        "exit_status": code if code >= 0 else "null",
        "signal": -code if code < 0 else "null",
        "started_ns": started_ns,
        "ended_ns": ended_ns,
        "started_at": started_at,
    }
    host = os.uname().nodename.replace("\\", "").replace('"', "")
    text = ", ".join(f'"{name}": {value}' for name, value in fields.items())
    path = f"{report_dir}/rank-{int(rank)}.json"
    with open(path + ".part", "w") as stream:  # noqa: PTH123 - importing pathlib takes longer than all the rest
        stream.write(f'{{"host": "{host}", {text}}}\n')
    os.rename(path + ".part", path)  # noqa: PTH104


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
