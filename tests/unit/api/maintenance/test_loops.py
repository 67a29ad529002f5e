"""Background loops end on cancellation, even if a library loses one, and leave connections to calls."""

import asyncio

import pytest

from api.__main__ import serve
from api.config import parse
from api.maintenance import loops
from api.store.store import Store
from kube.client import KubeClient
from kube.errors import KubeUnavailable


async def test_lost_cancellation_is_repeated(monkeypatch):
    monkeypatch.setattr(loops, "CANCEL_TIMEOUTS_SECONDS", (0.1, 30.0))
    lost = []

    async def lose_first_cancellation():
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if lost:
                    raise
                lost.append("once")

    tasks = [asyncio.create_task(lose_first_cancellation()), asyncio.create_task(asyncio.sleep(60))]
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await loops.cancel_all(tasks)
    assert lost == ["once"]
    assert all(task.cancelled() for task in tasks)


async def test_logs_and_watches_of_teams_leave_connections_to_calls(monkeypatch):
    """Five watches and eight build logs of each namespace, also of the installation's own."""
    found = {}

    async def connect(namespace, **settings):
        found.update(settings)
        raise KubeUnavailable(503, "", "the test ends here")

    async def open_store(*_):
        return None

    monkeypatch.setattr(KubeClient, "connect", connect)
    monkeypatch.setattr(Store, "open", open_store)
    teams = ",".join(f"team-{number}" for number in range(20))
    config = parse({"CREWYARD_TOKEN_KEY": "0123456789abcdef", "CREWYARD_NAMESPACES": teams})
    with pytest.raises(KubeUnavailable):
        await serve(config, {})
    assert found["extra_connections"] == 21 * (5 + 8)
