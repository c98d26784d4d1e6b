"""Run one rank's program and write its usage.

`python3 -I -S rank.py [--mpi-profile=LEVEL:LIBRARY] REPORT_DIR PROGRAM ARGUMENT...`

Started once per rank by the MPI launcher, so it must start fast: standard library, few imports (json alone would double its
start). CPU time and the rest come from wait4 (getrusage of the program and the children it waited for). The largest resident
set is at least this interpreter's own, about 10 MB: Linux carries the parent's mark over execve.
"""

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import resource
    from collections.abc import Iterable

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
# Open MPI, then MPICH and Intel MPI, then srun, flux run and HPE's PALS
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "FLUX_TASK_RANK", "PALS_RANKID")
# Variables that describe a program's world: of Open MPI, Hydra (MPICH, Intel MPI, MVAPICH2), any PMIx server and srun
WORLD_VARIABLES = (
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "PMI_SIZE",
    "PMI_RANK",
    "PMIX_RANK",
    "PMIX_NAMESPACE",
    "SLURM_STEP_NUM_TASKS",
)
LIBRARY_NAMES = ("libmpi", "libopen-", "libprrte", "libpmix")
FIRST_LOOK_S = 0.005
LOADING_S = 0.1  # a busy machine may leave a program without a processor for tens of milliseconds while it loads
LONGEST_PAUSE_S = 30.0
MOST_PROCESSES = 256
PR_SET_PDEATHSIG = 1
NOT_STARTED = 127
IO = ("rchar", "wchar", "read_bytes", "write_bytes")
DELAY_FIELD = 39  # delayacct_blkio_ticks, counted from the state of the process
PROFILE = "--mpi-profile="


def main(report_dir: str, argv: list[str], profile: str = "") -> int:
    """Run the program and exit as it does, by the same signal.

    ``profile``: LEVEL:LIBRARY that counts time inside MPI.
    """
    rank = next((os.environ[name] for name in RANK_VARIABLES if name in os.environ), "0")
    missing = missing_preloads()
    if missing:  # the loader would run the program without the tool
        sys.stderr.write(f"LD_PRELOAD: {missing[0]} does not exist on {os.uname().nodename}, or the sandbox hides it\n")
        return NOT_STARTED
    launcher = os.getppid()
    started_ns = time.monotonic_ns()
    started_at = time.time()
    # A signal between the start and the handlers would end us and leave the program alone. SIGCHLD stays blocked: it is
    # waited for, between looks at the program.
    signal.pthread_sigmask(signal.SIG_BLOCK, (*FORWARDED, signal.SIGCHLD))
    try:
        variables = {**os.environ, **(counting(profile, f"{report_dir}/rank-{int(rank)}.mpi") if profile else {})}
        pid = os.posix_spawnp(argv[0], argv, variables, setsigmask=())
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        return NOT_STARTED
    for number in FORWARDED:
        signal.signal(number, lambda received, _frame: pass_on(pid, received))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    die_with(launcher, pid)
    world = look_for_mpi(pid)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    ended_ns = time.monotonic_ns()
    waited = storage_wait(pid)
    before = input_output()
    _pid, status, usage = os.wait4(pid, 0)
    io = {**io_since(before), **waited}
    for number in FORWARDED:  # a launcher that asks twice must not cost the report
        signal.signal(number, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(status)
    write(report_dir, rank, code, usage, (started_ns, ended_ns, started_at), world, io)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    return code


def counting(profile: str, file: str) -> "dict[str, str]":
    """Return variables that preload the library, before the program's own preloads."""
    level, _, library = profile.partition(":")
    preloaded = os.environ.get("LD_PRELOAD")
    return {"LD_PRELOAD": f"{library}:{preloaded}" if preloaded else library, "RANKWIRE_MPI_PROFILE": f"{level}:{file}"}


def missing_preloads() -> "list[str]":
    """Return paths of LD_PRELOAD that do not exist.

    The loader itself searches names without a path and expands `$LIB`.
    """
    preloaded = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    return [path for path in preloaded if "/" in path and "$" not in path and not os.path.exists(path)]  # noqa: PTH110


def look_for_mpi(pid: int) -> "tuple[list[str], dict[str, str]] | None":
    """Watch the program until its MPI libraries are loaded; return them.

    Or until its end. With the launcher's variables. The program may be a script that starts another, and may load the
    library late. Looks become rare quickly; one takes some tens of microseconds. Libraries are loaded one after
    another, so looks continue until none was added for a while.
    """
    pause_s = FIRST_LOOK_S
    seen = None
    while signal.sigtimedwait((signal.SIGCHLD,), pause_s) is None:
        try:
            # Most programs are the MPI program themselves: whose children they have need not be known.
            now = mpi_program((pid,)) or mpi_program(family(pid)[1:])
        except OSError:
            now = None
        if seen is not None and (now is None or now[0] == seen[0]) and pause_s >= LOADING_S:
            return seen
        seen = now or seen
        pause_s = min(1.5 * pause_s, LONGEST_PAUSE_S) if seen is None else min(2 * pause_s, LOADING_S)
    return seen


def mpi_program(processes: "Iterable[int]") -> "tuple[list[str], dict[str, str]] | None":
    """Return files and variables of the first process with an MPI library, or None."""
    for process in processes:
        try:
            libraries = mpi_libraries(process)
            if any(name.startswith("libmpi") for name in libraries):
                return libraries, world_variables(process)
        except OSError:
            pass  # ended in this moment, or became a program that may not be looked at
    return None


def family(pid: int) -> "list[int]":
    """Return the program and the processes that it started."""
    members = [pid]
    for member in members:
        with open(f"/proc/{member}/task/{member}/children") as stream:  # noqa: PTH123
            members += map(int, stream.read().split())
        if len(members) > MOST_PROCESSES:
            break
    return members


def mpi_libraries(pid: int) -> "list[str]":
    """Return the names of MPI library files in a process's memory."""
    names = set()
    with open(f"/proc/{pid}/maps", "rb") as stream:  # noqa: PTH123
        for line in stream:
            name = line[line.rfind(b"/") + 1 :].rstrip().decode(errors="replace")
            if name.startswith(LIBRARY_NAMES):
                names.add(name)
    return sorted(names)


def world_variables(pid: int) -> "dict[str, str]":
    """Return the variables of a process that describe its world."""
    with open(f"/proc/{pid}/environ", "rb") as stream:  # noqa: PTH123
        pairs = (item.decode(errors="replace").partition("=") for item in stream.read().split(b"\0"))
    return {name: value for name, _, value in pairs if name in WORLD_VARIABLES}


def input_output() -> "dict[str, int]":
    """Return bytes that this process and its collected children read and wrote.

    Those of an ended program that is not collected are readable by root alone on newer kernels.
    """
    try:
        descriptor = os.open("/proc/self/io", os.O_RDONLY)
    except OSError:
        return {}  # a kernel without these counters
    try:
        text = os.read(descriptor, 4096).decode()
    finally:
        os.close(descriptor)
    counts = {name: int(value) for name, _, value in (line.partition(":") for line in text.splitlines()) if name in IO}
    return {**counts, "own": len(text)}


def io_since(before: "dict[str, int]") -> "dict[str, int]":
    """Return bytes of the program that was collected since, and of its children."""
    now = input_output() if before else {}
    counts = {name: now[name] - before[name] for name in IO if name in now and name in before}
    if "rchar" in counts:
        counts["rchar"] -= before["own"]
    return counts


def storage_wait(pid: int) -> "dict[str, int]":
    """Return milliseconds that an ended program waited for storage, if counted."""
    try:
        with open("/proc/sys/kernel/task_delayacct") as stream:  # noqa: PTH123
            is_counted = stream.read().strip() == "1"
        if not is_counted:
            return {}
        with open(f"/proc/{pid}/stat") as stream:  # noqa: PTH123
            ticks = int(stream.read().rpartition(")")[2].split()[DELAY_FIELD])
    except OSError:
        return {}
    return {"wait_ms": ticks * 1000 // os.sysconf("SC_CLK_TCK")}


def pass_on(pid: int, number: int) -> None:
    """Send a signal to the program, which may have ended in this moment."""
    try:  # noqa: SIM105 - importing contextlib would cost every rank its time
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def die_with(launcher: int, pid: int) -> None:
    """End the program if the launcher is killed: SIGTERM comes to us and is passed on."""
    import ctypes  # after the start: 3 ms that no rank should wait for

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != launcher:
        pass_on(pid, signal.SIGTERM)


def write(
    report_dir: str,
    rank: str,
    code: int,
    usage: "resource.struct_rusage",
    times: tuple[int, int, float],
    world: "tuple[list[str], dict[str, str]] | None",
    io: "dict[str, int]",
) -> None:
    """Write one JSON object per rank, completely or not."""
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
    host = plain(os.uname().nodename)
    if world is not None:
        libraries, variables = world
        fields["mpi_libraries"] = "[" + ", ".join(f'"{plain(name)}"' for name in libraries) + "]"
        pairs = ", ".join(f'"{name}": "{plain(value)}"' for name, value in variables.items())
        fields["mpi_world"] = "{" + pairs + "}"
    fields["io"] = "{" + ", ".join(f'"{name}": {value}' for name, value in io.items()) + "}"
    text = ", ".join(f'"{name}": {value}' for name, value in fields.items())
    path = f"{report_dir}/rank-{int(rank)}.json"
    with open(path + ".part", "w") as stream:  # noqa: PTH123 - importing pathlib takes longer than all the rest
        stream.write(f'{{"host": "{host}", {text}}}\n')
    os.rename(path + ".part", path)  # noqa: PTH104


def plain(text: str) -> str:
    """Return text that needs no escape in JSON."""
    return "".join(character for character in text if " " <= character <= "~" and character not in '"\\')[:200]


if __name__ == "__main__":
    words = sys.argv[1:]
    level = words.pop(0)[len(PROFILE) :] if words[0].startswith(PROFILE) else ""
    sys.exit(main(words[0], words[1:], level))
