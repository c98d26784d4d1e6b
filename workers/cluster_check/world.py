"""MPI hello: real ranks join a world, which must be the requested one."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic import model_validator as checks

from analysis.mpi.transports import ObservedTransport, sentence
from analysis.numbers import amount, plural
from experiments.cluster_kinds.settings import MPIRUN
from workers.capture.dumpcap import CaptureReport
from workers.cluster_check.hello import LARGE_BYTES
from workers.cluster_check.step import Step, ok, problem, skipped, warning, with_sudo
from workers.errors import CaptureUnavailable, TrialFailed
from workers.launchers import Job, Session
from workers.trial.failure import tail
from workers.trial.inside_mpi import profile_for, read_observed_transport
from workers.trial.rank_usage import read_rank_usage

HELLO: Final = Path(__file__).with_name("hello.py")
LIMIT_S: Final = 60.0
_PERMITTED: Final = "Permitted"
PING_PONG: Final = "Ping-pong between two hosts"
CALLS: Final = "MPI calls"
_SSH_BETWEEN: Final = re.compile(r"Permission denied|Host key verification failed|Could not resolve hostname")


_MOST_BYTES: Final = 1 << 20
"""Of what the ranks print: a host may state a size of terabytes, which are a hole here."""
_MOST_LINES: Final = 1000
_Line = Annotated[str, Field(max_length=1000)]
_Seconds = Annotated[float, Field(gt=1e-9, lt=1e6)]


class _Rank(BaseModel):
    """Output of a rank of `workers.cluster_check.hello`."""

    rank: int
    size: int
    sum: int
    host: _Line
    library: _Line
    small_s: _Seconds = 0.0
    large_s: _Seconds = 0.0

    @checks(mode="after")
    def _has_both_times(self) -> Self:
        if ("small_s" in self.model_fields_set) != ("large_s" in self.model_fields_set):
            raise ValueError("it has one time of two")
        return self


class _NoLibrary(BaseModel):
    """Output of a rank without an MPI library."""

    error: _Line


_ANSWER: Final = TypeAdapter[_Rank | _NoLibrary](_Rank | _NoLibrary)


@dataclass(frozen=True, slots=True)
class HelloResult:
    """How a launch of the hello ended. ``status`` None: it did not, within the limit."""

    status: int | None
    ranks: list[dict[str, Any]]
    stderr: str
    elapsed_s: float
    transport: ObservedTransport | None = None


def run_hello(session: Session, hosts: Sequence[str], python: str) -> HelloResult:
    """Run one rank on each of ``hosts``. Raises TrialFailed if none can start."""
    launch, (profile, _) = session.usual_launch, profile_for("summary", session)
    with tempfile.TemporaryDirectory(prefix="rankwire-hello-") as name:
        directory = Path(name)
        (directory / "work").mkdir()
        (directory / "work" / "hello.py").write_bytes(HELLO.read_bytes())
        job = Job(
            program=(python, "-I", "-S", "hello.py", launch.program if launch.launcher == MPIRUN else MPIRUN),
            ranks=len(hosts),
            ranks_per_host=1,
            hosts=tuple(hosts),
            launch=launch,
            workdir=directory / "work",
            report_dir=directory / "ranks",
            profile=profile,
        )
        out, err = directory / "stdout", directory / "stderr"
        process = session.launch(job, stdout=out, stderr=err)
        try:
            status = process.wait(LIMIT_S)
        finally:
            process.terminate(2.0)
        transport = read_observed_transport(job.report_dir, read_rank_usage(job.report_dir))
        with out.open("rb") as stream:
            ranks = _parse_ranks(stream.read(_MOST_BYTES).decode(errors="replace"))
        return HelloResult(status, ranks, _text_lines(err), process.elapsed_s, transport)


def judge(name: str, result: HelloResult, hosts: Sequence[str], mpirun: str) -> Step:
    """Judge whether the ranks were one world on these hosts."""
    if result.status is None:
        return problem(
            name,
            "Did not end",
            f"The ranks did not end within {amount(LIMIT_S, 's')}.{_quote(result.stderr)}",
            "Usually a firewall between the hosts: MPI needs open TCP ports among them (20000 to 20999 with the transport tcp, "
            "21000 to 21015 for the daemons of Open MPI), or another “Interface”.",
        )
    if result.status != 0:
        refused = [line for line in result.stderr.splitlines() if _SSH_BETWEEN.search(line)]
        seen = f"{mpirun} ended with status {result.status}.{_quote(refused[0] if refused else result.stderr)}"
        if refused:
            remedy = "The first host must be able to log in to the others without a password."
            command = f"ssh -o BatchMode=yes {hosts[-1]} hostname"
            return problem(
                name, "Failed", seen, remedy, command, at=f"on {hosts[0]}, as the user of the cluster's login"
            )
        return problem(name, "Failed", seen, "See the documentation of the MPI library on the first host.")
    return _world(name, result, hosts, mpirun)


def _world(name: str, result: HelloResult, hosts: Sequence[str], mpirun: str) -> Step:
    rank_count, ranks = len(hosts), result.ranks
    missing = [rank["error"] for rank in ranks if "error" in rank]
    if missing:
        return problem(
            name, "No MPI library", f"The ranks started, but no MPI library could be loaded there: {missing[0]}.",
            "Install the library on every host, or name its directory in LD_LIBRARY_PATH under “Environment”.",
        )  # fmt: skip
    if len(ranks) != rank_count:
        return problem(
            name, f"{len(ranks)} of {rank_count} ranks", f"Only {len(ranks)} of {plural(rank_count, 'rank')} answered."
        )
    library = ranks[0]["library"]
    if any(rank["size"] != rank_count or rank["sum"] != rank_count for rank in ranks):
        sizes = sorted({rank["size"] for rank in ranks})
        return problem(
            name,
            "Not one world",
            f"{plural(rank_count, 'rank')} were requested, but each found itself in a world of {sizes[0]}: "
            f"{mpirun} and the library of the hosts ({library}) do not belong together.",
            "Choose the “MPI library”, “Launch command” and “Launcher” that belong together.",
        )
    places = {rank["host"] for rank in ranks}
    if len(places) != rank_count and rank_count > 1:
        return problem(
            name,
            f"{len(places)} of {rank_count} hosts",
            f"All ranks ran on {', '.join(sorted(places))}, though {', '.join(hosts)} were requested.",
            "Two names may mean one machine.",
        )
    return ok(
        name,
        f"{plural(rank_count, 'rank')}, {amount(result.elapsed_s, 's')}",
        f"{library} on {', '.join(hosts)}: every rank reached all others.",
    )


def ping_pong(result: HelloResult, hosts: Sequence[str]) -> Step:
    """Return the step with the times of a small and a large message between two hosts."""
    times = next((rank for rank in result.ranks if "small_s" in rank), None)
    if times is None:
        return skipped(
            PING_PONG, "One host: nothing goes over a wire." if len(hosts) < 2 else "The ranks did not connect."
        )
    rate = amount(8 * LARGE_BYTES / times["large_s"], "bit/s")
    return ok(
        PING_PONG,
        f"{amount(times['small_s'], 's')}, {rate}",
        f"Half of a round trip between {' and '.join(hosts[:2])} by {times['library']}, of 1 B and of 1 MiB; the median of a few. "
        f"Messages went by: {sentence(result.transport)}.",
    )


def calls(session: Session, result: HelloResult | None) -> Step:
    """Return the step on the profile library in the ranks of the MPI hello."""
    _, reason = profile_for("summary", session)
    if reason:
        return warning(
            CALLS,
            "Not counted",
            f"{reason[0].upper()}{reason[1:]}. Trials run, without their time inside MPI.",
            "Install a C compiler where the worker runs, and use hosts of its architecture.",
        )
    if result is None or result.status != 0:
        return skipped(CALLS, "Because the MPI hello failed.")
    if result.transport is None:
        return warning(
            CALLS,
            "No report",
            "Ranks of the MPI hello did not load the profile library: trials run, without their time inside MPI.",
            "Let the login and the launch command pass LD_PRELOAD on to the ranks.",
        )
    return ok(CALLS, plural(len(result.ranks), "rank"), "Every rank of the MPI hello loaded the profile library.")


def recorded(session: Session, run: Callable[[], list[Step]], results: Sequence[HelloResult] = ()) -> list[Step]:
    """Return the steps of ``run``, and one on the recordings made meanwhile.

    ``run`` adds to the ``results``, which say by which networks messages went.
    """
    failures: dict[str, str] = {}
    reports: dict[str, CaptureReport] = {}
    with ExitStack() as stack:
        captures = {}
        for host in session.recorded_hosts:
            try:
                captures[host] = stack.enter_context(session.capture(host))
            except CaptureUnavailable as error:
                failures[host or "this machine"] = str(error)
        steps = run()
        for host, capture in captures.items():
            try:
                reports[host or "all hosts"] = capture.stop()
            except TrialFailed as error:
                failures[host or "this machine"] = str(error)
    went_over_the_wire = len(session.hosts) > 1 and all(step.state == "ok" for step in steps)
    transport = results[-1].transport if results else None
    permission = _permission(failures, reports, transport, went_over_the_wire=went_over_the_wire)
    if len(session.hosts) == 1 and permission.value == _PERMITTED:
        permission = replace(permission, seen="Recording works. One host: nothing goes over a wire.")
    return [*steps, permission]


def _permission(
    failures: dict[str, str],
    reports: dict[str, CaptureReport],
    transport: ObservedTransport | None = None,
    *,
    went_over_the_wire: bool,
) -> Step:
    name = "Capture permission"
    if failures:
        return warning(
            name,
            f"Missing on {', '.join(failures)}",
            f"{'; '.join(dict.fromkeys(failures.values()))}. Trials run, but packets of these hosts are not recorded.",
            "Give the account the right to record, then check the cluster again.",
            "sudo setcap cap_net_raw,cap_net_admin+eip $(command -v dumpcap)",
            at=with_sudo(failures),
        )
    if died := [host for host, report in reports.items() if report.died]:
        return warning(
            name,
            f"The recorder ended early on {', '.join(died)}",
            "Its packets cannot be counted.",
            "Run dumpcap on these hosts for some seconds, and fix what ends it.",
        )
    silent = [host for host, report in reports.items() if not report.captured]
    if silent and transport is not None and transport.devices:
        return ok(
            name,
            "Not for MPI",
            f"Recording is permitted, but MPI uses {sentence(transport)}: its packets bypass the kernel. Trials are complete without "
            "them; the transport tcp makes MPI use the recorded interface.",
        )
    if silent and went_over_the_wire:
        return warning(
            name,
            f"Nothing on {', '.join(silent)}",
            "Recording is permitted, but none of the packets of the MPI hello was seen.",
            "Is “Interface” the one between the hosts, and “Capture filter” not too narrow?",
        )
    if not reports:
        return skipped(name, "Nothing is recorded on this cluster.")
    if len(silent) == len(reports):
        return ok(
            name,
            _PERMITTED,
            f"No packet was seen on {', '.join(silent)}: no message of the MPI hello went over the network.",
        )
    counts = ", ".join(f"{host} {plural(report.captured, 'packet')}" for host, report in reports.items())
    return ok(name, plural(len(reports), "recording"), f"Packets of the MPI hello were recorded: {counts}.")


def _parse_ranks(text: str) -> list[dict[str, Any]]:
    ranks = []
    for line in text.splitlines():
        with suppress(ValidationError):  # output of a login script, or of a hostile host
            ranks.append(_ANSWER.validate_json(line).model_dump(exclude_unset=True))
    return ranks


def _text_lines(path: Path) -> str:
    """Return the lines that contain words: libraries draw frames."""
    lines = tail(path, lines=_MOST_LINES).splitlines()
    return "\n".join(line.strip() for line in lines if re.search(r"\w", line))


def _quote(stderr: str, lines: int = 3) -> str:
    last = " ".join(stderr.splitlines()[-lines:])[-400:]
    return f" Output: {last}" if last else ""
