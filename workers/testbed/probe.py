"""Requirements of the test-bed on this machine, with suggested fixes."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

from analysis.numbers import amount
from workers.agent import seccomp
from workers.compiled import Library, NotCompiled
from workers.errors import ClusterUnavailable
from workers.hosts.programs import find_program, missing_programs
from workers.testbed import emulation

# program -> Debian package. dumpcap is not among them: the test-bed records with a ring of its own.
PROGRAMS = {
    "unshare": "util-linux",
    "ip": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "mpirun": "openmpi-bin",
    "/usr/bin/python3": "python3",
}
# Sysctls by which distributions forbid user namespaces, with the value that forbids and the one that allows.
GATES = (
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user.max_user_namespaces", "0", "15000"),
)
CAP_SYS_ADMIN = 21  # linux/capability.h
CAP_NET_ADMIN = 12
TUN = "/dev/net/tun"
RELAY_SOURCE = Path(__file__).with_name("relay.c")
PROBES = 3
PROBE_LIMIT_S = 10.0
NO_NETEM = "This kernel has no netem (module sch_netem)."
NO_NUMGEN = "This kernel's nftables cannot drop frames at random (module nft_numgen)."

_granted: set[tuple[str, ...]] = set()


def probe() -> list[str]:
    """Return all obstacles of the test-bed here, in sentences."""
    return missing_programs(PROGRAMS) or namespace_problems()


def unshare_argv() -> list[str]:
    """Return the command that gives the agent its namespaces.

    With root's capabilities no user namespace is made: in one, root may not even enter directories of other users.
    --kill-child: the end of `unshare` is the end of PID 1 of the namespace, and so of everything in it.
    """
    user = [] if has_capabilities() else ["--user", "--map-root-user"]
    return [
        find_program("unshare") or "unshare",
        *user,
        *("--net", "--mount", "--uts", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"),
    ]


def has_capabilities() -> bool:
    """Return whether this process can make namespaces without a user namespace."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            held = int(line.split()[1], 16)
            return bool(held >> CAP_SYS_ADMIN & held >> CAP_NET_ADMIN & 1)
    return False


def emulators() -> dict[str, str]:
    """Return the obstacle of each back end for delay, jitter and loss; "" for none."""
    nft = "" if find_program("nft") else "nftables needs the program nft: install the package nftables."
    return {
        "netem": NO_NETEM if _refusal("tc", "qdisc", "add", "dev", "lo", "root", "netem") else "",
        "nftables": nft or (NO_NUMGEN if _refusal("nft", "-f", "-", text=emulation.nft_loss(["lo"], 0.01)) else ""),
        "relay": _tun_problem() or _relay_problem(),
    }


def _tun_problem() -> str:
    try:
        os.close(os.open(TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"This user cannot open {TUN} ({error.strerror}): a link with delay or jitter needs it here."
    return ""


def _relay_library() -> Library:
    texts = {RELAY_SOURCE.name: RELAY_SOURCE.read_text()}
    return Library("relay", RELAY_SOURCE.parent, RELAY_SOURCE.name, texts, ("-lm",))


def made_relay() -> Path:
    """Return the relay's library; the first call builds it in some seconds.

    Raises ClusterUnavailable.
    """
    try:
        return _relay_library().built()
    except NotCompiled as error:
        raise ClusterUnavailable(f"The relay cannot be made: {error}.") from error


def _relay_problem() -> str:
    obstacle = _relay_library().obstacle()
    return f"The relay cannot be made: {obstacle}." if obstacle else ""


def _refusal(program: str, *arguments: str, text: str = "") -> str:
    """Return the kernel's refusal of a command in namespaces; else empty.

    The namespaces are the test-bed's. Only a grant is remembered. A probe that was killed or timed out shows nothing
    and is repeated; raises ClusterUnavailable if all were.
    """
    question = (program, *arguments, text)
    if question in _granted:
        return ""
    argv = [*unshare_argv(), find_program(program) or program, *arguments]
    ends = []
    for _ in range(PROBES):
        try:
            probe = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=PROBE_LIMIT_S, check=False)
        except OSError as error:
            return str(error)
        except subprocess.TimeoutExpired:
            ends.append(f"did not end within {amount(PROBE_LIMIT_S, 's')}")
            continue
        if probe.returncode == 0:
            _granted.add(question)
            return ""
        if probe.returncode > 0:
            return probe.stderr.strip() or f"exit status {probe.returncode}"
        ends.append(f"was killed by signal {-probe.returncode}")
    raise ClusterUnavailable(
        f"Whether the kernel grants the test-bed's namespaces could not be found out: `{program}` {', then '.join(ends)}."
    )


def namespace_problems() -> list[str]:
    """Return why this user cannot make sandboxes, with the sysctl to set."""
    try:
        ctypes.CDLL(seccomp.LIBRARY)
    except OSError:
        return [f"The library {seccomp.LIBRARY} is missing: install the package libseccomp2."]
    refusal = _refusal("true")
    if not refusal:
        return []
    closed = [
        f"User namespaces are forbidden here: set {name}={allowing} (sysctl -w {name}={allowing})."
        for name, forbidding, allowing in GATES
        if _sysctl(name) == forbidding
    ]
    return closed or [f"The kernel refuses the test-bed's namespaces: {refusal}."]


def _sysctl(name: str) -> str | None:
    try:
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    except OSError:
        return None
