"""Placement of ranks on machines of known processors."""

from __future__ import annotations

import time
from typing import Any

import pytest

from analysis.mpi.placement import Core, Machine, findings, machines_of, pictures, sharing_ranks, stored

# two sockets of four cores with two hardware threads each: CPU 8 is the second one of core 0
SMT = tuple(Core(number // 4, number // 4, (number, number + 8)) for number in range(8))
PLAIN = tuple(Core(number // 4, number // 4, (number,)) for number in range(8))


def machine(host: str = "n1", cores: tuple[Core, ...] = SMT, allowed: range | set[int] = range(16)) -> Machine:
    return Machine((host,), cores, frozenset(allowed) & {cpu for core in cores for cpu in core.cpus})


def ranks(*allowed: str, host: str = "n1", first: int = 0, **facts: Any) -> list[dict[str, Any]]:
    """Ranks that ended on the first CPU of what they might use."""
    rows = []
    for number, cpus in enumerate(allowed):
        cpu = int(cpus.replace("-", ",").split(",")[0])
        rows.append({"rank": first + number, "host": host, "cpus": [cpu], "cpu": cpu, "allowed": cpus, **facts})
    return rows


@pytest.mark.parametrize(
    ("allowed", "cores", "threads", "names"),
    [
        pytest.param(["0", "1", "4", "5"], PLAIN, 1, set(), id="a core each, on both sockets"),
        pytest.param(["0", "0", "4", "5"], PLAIN, 1, {"shared_core"}, id="two ranks on one core"),
        pytest.param(["0-3", "0-3", "4-7", "4-7"], PLAIN, 1, set(), id="two ranks on each socket"),
        pytest.param(["0-3", "0-3", "4-7"], PLAIN, 3, {"shared_core"}, id="six threads on four cores"),
        pytest.param(["0-3", "4-7"], PLAIN, 4, set(), id="four threads on four cores"),
        pytest.param(["0,8", "1,9", "4,12", "5,13"], SMT, 1, set(), id="both hardware threads of a core each"),
        pytest.param(["0", "8", "4", "12"], SMT, 1, {"threads_as_cores"}, id="hardware threads as cores"),
        pytest.param(["0-15"] * 12, SMT, 1, {"threads_as_cores"}, id="unbound, more ranks than cores"),
        pytest.param(["0", "0", "8", "4"], SMT, 1, {"shared_core"}, id="three ranks on two hardware threads"),
        pytest.param(["0-7"] * 9, PLAIN, 1, set(), id="more ranks than the job has cores"),
        pytest.param(["0", "1"], PLAIN, 1, {"idle_socket"}, id="one socket of two"),
        pytest.param(["0-3"], PLAIN, 4, {"idle_socket"}, id="four threads on one socket of two"),
        pytest.param(["0"], PLAIN, 1, set(), id="one rank"),
    ],
)
def test_findings_follow_from_the_cpus_that_ranks_may_use(
    allowed: list[str], cores: tuple[Core, ...], threads: int, names: set[str]
) -> None:
    rows = ranks(*allowed)
    for number, row in enumerate(rows):  # unbound ranks ran on both sockets
        row["cpus"] = [number % 8] if "-" in row["allowed"] and len(allowed) > 4 else row["cpus"]
    assert findings(rows, [machine(cores=cores)], threads).keys() == names


def test_findings_name_ranks_cores_and_sockets() -> None:
    shared = findings(ranks("0", "0", "1", "5"), [machine(cores=PLAIN)])
    assert shared == {"shared_core": "ranks 0-1 of n1 share 1 core, and 5 cores had no rank"}
    assert findings(ranks("0", "8", "4"), [machine()]) == {
        "threads_as_cores": "ranks 0-1 of n1 share 1 core with 2 hardware threads"
    }
    assert findings(ranks("0-3", "0-3"), [machine(cores=PLAIN)]) == {
        "idle_socket": "ranks 0-1 of n1 ran on socket 0, and socket 1 had none"
    }


def test_sharing_ranks_are_those_on_one_core_of_one_machine() -> None:
    rows = ranks("0", "8", "4") + ranks("1", "9,1", "5", host="n2", first=3)
    assert sharing_ranks(rows, [machine(), machine("n2")]) == {0, 1, 3, 4}
    assert sharing_ranks(rows, []) == frozenset()


def test_findings_judge_the_cpuset_of_the_job() -> None:
    one_socket = machine(cores=PLAIN, allowed=range(4))
    assert findings(ranks("0", "1"), [one_socket]) == {}
    one_core = machine(cores=PLAIN, allowed={2})
    assert findings(ranks("2", "2"), [one_core]) == {}, "the job has no other core"


def test_migrated_rank_is_one_that_was_seen_on_several_sockets() -> None:
    moved = ranks("0-7", "0-7", "4")
    moved[0]["cpus"], moved[1]["cpus"] = [0, 1, 5], [0, 3]
    assert findings(moved, [machine(cores=PLAIN)]) == {"migrated_rank": "rank 0 of n1 moved between sockets"}


def test_findings_of_several_hosts_name_the_first_and_count_the_others() -> None:
    hosts = [machine(f"n{number}", PLAIN) for number in range(1, 4)]
    rows = [row for number, host in enumerate(hosts) for row in ranks("0", "0", "4", host=host.name, first=3 * number)]
    assert findings(rows, hosts)["shared_core"].endswith("6 cores had no rank, and 2 other hosts likewise")
    alone = ranks("0", "0", "4", host="localhost.localdomain")
    assert "shared_core" in findings(alone, hosts[:1]), "one machine has one name, whatever its ranks call it"


def test_ranks_and_machines_that_are_not_known_have_no_finding() -> None:
    assert findings([{"rank": 0, "host": "n1"}], [machine()]) == {}
    assert findings([*ranks("0", "1"), {"rank": 2, "host": "n1"}], [machine(cores=PLAIN)]) == {}
    assert findings(ranks("0", "0"), [machine(cores=())]) == {}
    assert findings(ranks("0", "0"), []) == {}
    assert findings(ranks("400", "400"), [machine()]) == {}
    assert pictures(ranks("0"), [machine(cores=())]) == []


def test_pictures_collapse_machines_that_look_the_same() -> None:
    hosts = [machine(f"n{number:02}", PLAIN) for number in range(1, 65)]
    rows = [row for number, host in enumerate(hosts) for row in ranks("0", "4", host=host.name, first=2 * number)]
    rows[-1] |= {"allowed": "5", "cpus": [5], "cpu": 5}
    same, other = pictures(rows, hosts)
    assert (len(same.names), other.names) == (63, ("n64",))
    assert {core: [row["rank"] for row in those] for core, those in same.ranks.items()} == {0: [0], 4: [1]}
    assert {core: [row["rank"] for row in those] for core, those in other.ranks.items()} == {0: [126], 5: [127]}


def test_stored_machines_are_read_back_and_equal_ones_are_stored_once() -> None:
    hosts = [machine("n1"), machine("n2"), machine("n3", PLAIN), Machine(("a", "b"), PLAIN, frozenset({0}))]
    rows = stored(hosts)
    assert [row["hosts"] for row in rows] == [[["n1"], ["n2"]], [["n3"]], [["a", "b"]]]
    assert machines_of(rows) == hosts


def test_ranks_that_each_may_use_thousands_of_cores_take_time_that_grows_as_their_number():
    """A hostile host and its ranks state both."""
    cores = tuple(Core(0, 0, (cpu,)) for cpu in range(9000))
    machine = Machine(("h",), cores, frozenset(range(9000)))

    def took_s(count: int) -> float:
        ranks = [{"rank": n, "host": "h", "cpus": [0], "cpu": 0, "allowed": f"0-{8999 - n}"} for n in range(count)]
        began_s = time.process_time()
        assert findings(ranks, [machine]) == {}
        return time.process_time() - began_s

    assert took_s(400) < 2.8 * took_s(200)
