"""Cluster check by steps; a step without its requirement is skipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import structlog

from analysis.numbers import amount, plural
from experiments.cluster_kinds.settings import HostSettings, Login
from experiments.models import Cluster, ClusterTest
from experiments.models.changes import note
from experiments.specification import Link
from workers import account, launchers
from workers.cluster_check import counters, hosts, world
from workers.cluster_check.launcher import launcher as launcher_of_ranks
from workers.cluster_check.step import Step, ok, problem, skipped, warning
from workers.errors import ClusterUnavailable, TrialFailed
from workers.launchers import Launcher, Session
from workers.launchers.base import Reached
from workers.launchers.remote import RemoteSession
from workers.launchers.ssh_words import KEY_UNREADABLE, quoted_path
from workers.worker_identity import identity

ON_HOSTS: Final = (
    "Launch command", "MPI hello across two hosts", world.PING_PONG, "MPI hello across all hosts", "Capture permission", world.CALLS,
    hosts.EQUAL_HOSTS, "Offloads", "Link", hosts.PATH_MTU, "Free disk", "Clocks", counters.NAME,
)  # fmt: skip
Tell = Callable[[str, Sequence[Step]], None]

log = structlog.get_logger()


def run_requested(cluster: Cluster) -> bool:
    """Run the waiting check; return False without one or while hosts are in use."""
    test = ClusterTest.begin(cluster, identity())
    if test is None:
        return False
    last_steps: list[Step] = []

    def tell(trying: str, steps: Sequence[Step]) -> None:
        last_steps[:] = steps
        test.tell(trying, [step.to_dict() for step in steps])

    try:
        steps = steps_of(cluster.kind, cluster.settings, tell)
    except Exception as error:  # the page must not wait for ever, and the next test must be possible
        log.exception("cluster_test_errored", cluster=cluster.slug)
        steps = [
            *last_steps,
            problem(
                "Check",
                "Failed",
                f"{type(error).__name__}: {error}",
                "This is a fault of Rankwire: report it to the administrator.",
            ),
        ]
    test.end([step.to_dict() for step in steps])
    counts = [plural(sum(step.state == state for step in steps), state) for state in ("problem", "warning")]
    note(cluster, "check", f"ended: {', '.join(counts)}")
    if not cluster.traits.on_this_machine:
        cluster.fill_in({name: value for step in steps for name, value in step.facts.items()})
    return True


def steps_of(kind: str, settings: Mapping[str, Any], tell: Tell) -> list[Step]:
    """Return the steps of a check; ``tell`` gets the next step and the results."""
    steps: list[Step] = []
    tell("the settings", steps)
    try:
        launcher = launchers.get(kind, settings)
    except ClusterUnavailable as error:
        return [
            problem("Settings", "Wrong", str(error), "Change them in the form."),
            *_untried("the settings are wrong"),
        ]
    unreadable_key = _key_file(launcher)
    steps.append(unreadable_key or ok("Settings", "Complete", f"The worker runs {account.in_words()}."))
    if missing := launcher.probe():
        steps.append(problem("Worker's machine", "Not ready", " ".join(missing)))
        return [*steps, *_untried("the worker's machine is not ready")]
    tell("access to the hosts", steps)
    answered: list[str] = []
    steps += _reached(launcher, answered)
    if unreadable_key and any(step.state == "problem" and KEY_UNREADABLE in step.seen for step in steps):
        steps.remove(unreadable_key)  # the hosts that refused it report the same
    if answered == [] and any(step.state == "problem" for step in steps):
        return [*steps, *_untried("no host can be used")]
    tell("the start on the hosts", steps)
    for_test, count = launcher.for_test(answered)
    try:
        with for_test.open(host_count=count, link=Link.model_validate({})) as session:
            steps += _versions(session, known_steps={step.name for step in steps})
            steps.append(
                ok("Start", plural(len(session.hosts), "host"), f"A trial could begin on {', '.join(session.hosts)}.")
            )
            return _on_hosts(session, steps, tell)
    except (ClusterUnavailable, OSError) as error:
        steps.append(problem("Start", "Failed", str(error)))
    done = {step.name for step in steps}
    return [*steps, *(step for step in _untried("the hosts could not be kept ready") if step.name not in done)]


def _key_file(launcher: Launcher) -> Step | None:
    """Return a warning if the worker's user cannot read the private key.

    No problem: the ssh configuration may name another key.
    """
    login = getattr(launcher.settings, "login", None) or launcher.settings
    key = login.key if isinstance(login, Login) else None
    if key is None or "%" in key or "$" in key:
        return None
    path = os.path.expanduser(key)  # noqa: PTH111 - that of Path raises for unknown users
    if os.access(path, os.R_OK):
        return None
    return warning(
        "Settings",
        "Unreadable private key" if os.path.exists(path) else "Private key not found",  # noqa: PTH110 - as above
        f"The worker's user cannot read the file {key} on the worker's machine.",
        "Correct the path under “Private key”, or give the worker's user the file.",
        f"ls -l {quoted_path(key)}",
        at=account.in_words(),
    )


def _untried(because: str) -> list[Step]:
    return [skipped(name, f"Because {because}.") for name in ON_HOSTS]


def _reached(launcher: Launcher, answered: list[str]) -> list[Step]:
    """Return the steps "Reach" and "Python"; fill ``answered`` with the usable hosts."""
    answers = launcher.reach()
    if not answers:
        return []
    failed = [answer for answer in answers if answer.problem]
    reached = [answer for answer in answers if not answer.problem]
    slowest = max((answer.took_s for answer in reached), default=0.0)
    if failed:
        steps = [_unreached(_by_cause(failed), len(answers))]
    else:
        steps = [
            ok(
                "Reach",
                f"{len(answers)} of {len(answers)}",
                f"{', '.join(answer.host for answer in answers)}; slowest {amount(slowest, 's')}.",
            )
        ]
    if not launcher.reports_python or not reached:
        answered += [answer.host for answer in reached]
        return steps
    versions = {answer.host: answer.python for answer in reached}
    steps.append(hosts.python(versions))
    answered += [host for host in versions if hosts.python({host: versions[host]}).state == "ok"]
    return steps


def _by_cause(failed: Sequence[Reached]) -> list[list[Reached]]:
    """Return the hosts that failed for one reason together, in their order."""
    causes: dict[tuple[str, str], list[Reached]] = {}
    for answer in failed:
        cause = answer.problem.replace(f"ost {answer.host} ", "ost ")
        causes.setdefault((cause, answer.remedy), []).append(answer)
    return list(causes.values())


def _unreached(causes: Sequence[Sequence[Reached]], host_count: int) -> Step:
    """Return the step of the hosts that failed; each of several reasons is a line."""
    lines = []
    for first, *others in causes:
        also = f" The same holds for {', '.join(answer.host for answer in others)}." if others else ""
        lines.append((f"{first.problem}{also}", first.remedy))
    failed = [answer for of_cause in causes for answer in of_cause]
    commands = dict.fromkeys(command for answer in failed for command in answer.commands)
    seen, remedy = lines[0] if len(lines) == 1 else ("\n".join(" ".join(line) for line in lines), "")
    return problem("Reach", f"{len(failed)} of {host_count} failed", seen, remedy, *commands, at=account.in_words())


def _versions(session: Session, known_steps: set[str]) -> list[Step]:
    """Check Python on hosts that a scheduler has just allotted."""
    versions = {host: agent.python for host, agent in session.remote_agents.items()}
    return [hosts.python(versions)] if versions and "Python" not in known_steps else []


def _on_hosts(session: Session, steps: list[Step], tell: Tell) -> list[Step]:
    launcher = session.launcher
    host_settings = launcher.settings if isinstance(launcher.settings, HostSettings) else None
    tell("the launch command", steps)
    steps.append(hosts.launch_command(session, session.usual_launch))
    hello_can_run = steps[-1].state == "ok"
    if isinstance(session, RemoteSession) and (step := launcher_of_ranks(session)) is not None:
        steps.append(step)
    steps += _worlds(session, launcher, steps, tell) if hello_can_run else [
        skipped(name, "Because the launch command is missing.") for name in ON_HOSTS[1:6]
    ]  # fmt: skip
    tell("the network", steps)
    environment = session.environment()
    interfaces = hosts.interfaces(session, environment)
    steps += [
        hosts.equal_hosts(session, environment),
        hosts.offloads(interfaces, session.offloads_left),
        hosts.link(interfaces),
        hosts.path_mtu(session, interfaces),
    ]
    tell("disks and clocks", steps)
    steps += [hosts.disk(session, host_settings.scratch if host_settings else "/"), hosts.clocks(session)]
    tell("the counters", steps)
    return [*steps, *counters.counters(session)]


def _worlds(session: Session, launcher: Launcher, steps: list[Step], tell: Tell) -> list[Step]:
    """Run the MPI hello across two hosts, then across all; both are recorded."""
    two, everyone = session.hosts[:2], session.hosts
    results: list[world.HelloResult] = []

    def hello(name: str, those: Sequence[str]) -> tuple[Step, Step]:
        tell(f"the {name}", steps)
        try:
            result = world.run_hello(session, those, launcher.python)
        except TrialFailed as error:
            return problem(name, "Failed", str(error)), skipped(world.PING_PONG, "Because it could not be started.")
        results.append(result)
        met = world.judge(name, result, those, session.usual_launch.program)
        if met.state != "ok":
            return met, skipped(world.PING_PONG, "Because the ranks did not connect.")
        return met, world.ping_pong(result, those)

    def both() -> list[Step]:
        first = hello(ON_HOSTS[1] if len(two) > 1 else "MPI hello on one host", two)
        if len(everyone) <= len(two):
            return [*first]
        two_met = first[0].state == "ok"
        return [
            *first,
            hello(ON_HOSTS[3], everyone)[0] if two_met else skipped(ON_HOSTS[3], "Because it failed on two."),
        ]

    steps_of_worlds = world.recorded(session, both, results)
    return [*steps_of_worlds, world.calls(session, results[-1] if results else None)]
