"""Tests of leader election: takeover after the leader's end, halt or loss of the database."""

import asyncio
import signal
import subprocess
import sys
import time

import pytest

from api.store.sql.leader import SingleProcessLeader
from api.store.sql.postgres.leader import PostgresLeader
from tests.unit.api.store.postgres_server import PostgresServer

REPLICA = """
import asyncio, sys
from api.store.sql.postgres.leader import PostgresLeader

async def work():
    print("leads", flush=True)
    await asyncio.sleep(600)

asyncio.run(PostgresLeader(sys.argv[1], "crews").lead(work))
"""


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.database()


class LocalReplica:
    """A replica inside this process; `led` counts how often it began to lead."""

    def __init__(self, url: str, namespace: str = "crews") -> None:
        self.leader = PostgresLeader(url, namespace)
        self.leads = asyncio.Event()
        self.led = 0
        self.task = asyncio.create_task(self.leader.lead(self._work))

    async def _work(self) -> None:
        self.led += 1
        self.leads.set()
        try:
            await asyncio.sleep(600)
        finally:
            self.leads.clear()

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.wait((self.task,))


async def leading(*replicas: LocalReplica, led: int = 0) -> LocalReplica:
    """Return the leader, once there is one and all together have led `led` times."""
    end = time.monotonic() + 120
    while True:
        leaders = [replica for replica in replicas if replica.leads.is_set()]
        if leaders and sum(replica.led for replica in replicas) >= led:
            assert len(leaders) == 1
            return leaders[0]
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


async def test_takeover_after_close(url: str) -> None:
    replicas = [LocalReplica(url) for _ in range(3)]
    elsewhere = LocalReplica(url, "another-namespace")
    await leading(elsewhere)
    while replicas:
        first = await leading(*replicas)
        await asyncio.sleep(0.3)
        assert await leading(*replicas) is first and not first.leader.other_leader_seen
        await first.close()
        replicas.remove(first)
    await elsewhere.close()


async def test_lost_session_ends_leadership(url: str, postgres: PostgresServer) -> None:
    one = LocalReplica(url)
    await leading(one)
    other = LocalReplica(url)
    async with asyncio.timeout(60):
        while not other.leader.other_leader_seen:
            await asyncio.sleep(0.05)
    name = url.split("@/")[1].split("?")[0]
    postgres.sql(
        "postgres",
        "select pg_terminate_backend(pid) from pg_locks join pg_stat_activity using (pid) "
        f"where locktype = 'advisory' and granted and datname = '{name}'",
    )
    await leading(one, other, led=2)
    await one.close()
    await other.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_takeover_after_kill_or_stop(url: str, how: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", REPLICA, url], stdout=subprocess.PIPE) as first:
        try:
            assert first.stdout is not None
            while await asyncio.to_thread(first.stdout.readline) != b"leads\n":
                assert first.poll() is None
            other = LocalReplica(url)
            await asyncio.sleep(0.2)
            assert other.led == 0
            first.send_signal(how)
            await leading(other)
        finally:
            first.kill()
    await other.close()


async def test_end_of_work_ends_leadership(url: str) -> None:
    async def fail() -> None:
        raise LookupError("the work's own")

    for leader in (PostgresLeader(url, "crews"), SingleProcessLeader()):
        with pytest.raises(LookupError):
            await leader.lead(fail)
