"""Keeping the cluster open between trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.workers.clusters.trials import PlainLink, run
from workers.launchers import Job, Session, SessionPool


@pytest.fixture
def pool() -> Iterator[SessionPool]:
    pool = SessionPool()
    yield pool
    pool.close()


def lease(pool: SessionPool, host_count: int = 2, **link: float) -> Session:
    """The session of one lease, after its body ended well."""
    with pool.lease("testbed", host_count=host_count, link=PlainLink(**link)) as session:  # type: ignore[arg-type]
        return session


def test_the_same_hosts_and_link_share_a_session_which_runs_job_after_job(
    pool: SessionPool, make_job: Callable[..., Job]
) -> None:
    sessions = set()
    for _ in range(3):
        with pool.lease("testbed", host_count=2, link=PlainLink()) as session:
            status, stdout, stderr = run(session, make_job(session, "hostname"))
            sessions.add(session)
        assert (status, sorted(stdout.split())) == (0, ["n1", "n2"]), stderr
    assert len(sessions) == 1


def test_interleaved_sizes_and_links_find_their_sessions_again(pool: SessionPool) -> None:
    first = lease(pool)
    second = lease(pool, host_count=3)
    third = lease(pool, host_count=3, bandwidth_bps=1e8)
    assert len({first, second, third}) == 3
    assert [lease(pool, host_count=3), lease(pool)] == [second, first]


def test_the_session_used_longest_ago_is_closed_if_too_many_are_open(
    pool: SessionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.launchers.pool.MOST_OPEN", 2)
    first, second = lease(pool), lease(pool, host_count=1)
    assert lease(pool) is first
    third = lease(pool, host_count=3)
    assert (first.alive(), second.alive(), third.alive()) == (True, False, True)


def test_the_hosts_of_all_open_sessions_are_limited(pool: SessionPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.launchers.pool.MOST_HOSTS", 3)
    first, second = lease(pool), lease(pool, host_count=1)
    third = lease(pool, host_count=2, bandwidth_bps=1e8)
    assert (first.alive(), second.alive(), third.alive()) == (False, True, True)


def test_sessions_that_share_their_hosts_are_not_open_at_once(
    pool: SessionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.launchers.testbed.TestbedSession.is_isolated", False)
    first, second = lease(pool), lease(pool, host_count=1)
    assert (first.alive(), second.alive()) == (False, True)


def test_a_dead_session_is_replaced(pool: SessionPool, eventually: Callable[..., object]) -> None:
    first = lease(pool)
    psutil.Process(first.agent.pid).kill()
    eventually(lambda: not first.alive())
    assert lease(pool).alive()


def test_an_exception_in_a_trial_closes_its_session(pool: SessionPool) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        pool.lease("testbed", host_count=1, link=PlainLink()) as session,
    ):
        raise ZeroDivisionError
    assert not session.alive()


CLOSES_CONNECTIONS = """
import socket
address = socket.gethostbyname(socket.gethostname())
for port in range(20000, 20000 + COUNT):
    with socket.create_server((address, port)) as server, socket.create_connection((address, port)) as ours:
        server.accept()[0].close()
        ours.recv(1)
"""


@pytest.mark.parametrize(("count", "is_same"), [(100, True), (900, False)])
def test_a_host_whose_ports_a_job_occupied_is_replaced(
    pool: SessionPool, make_job: Callable[..., Job], count: int, is_same: bool
) -> None:
    """The next trial, also another user's, had no port to listen on for a minute."""
    program = ("/usr/bin/python3", "-c", CLOSES_CONNECTIONS.replace("COUNT", str(count)))
    with pool.lease("testbed", host_count=2, link=PlainLink()) as session:
        status, _, stderr = run(session, make_job(session, *program, hosts=1))
        assert status == 0, stderr
    assert (lease(pool) is session) == is_same
