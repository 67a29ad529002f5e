"""The facade's background work ends when it is told to, whatever its libraries do with a cancellation."""

import asyncio

from api.maintenance import loops


async def test_work_that_loses_a_cancellation_is_cancelled_again(monkeypatch):
    monkeypatch.setattr(loops, "CANCEL_TIMEOUTS_SECONDS", (0.1, 30.0))
    lost = []

    async def forgetful():
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if lost:
                    raise
                lost.append("once")

    tasks = [asyncio.create_task(forgetful()), asyncio.create_task(asyncio.sleep(60))]
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await loops.cancel_all(tasks)
    assert lost == ["once"]
    assert all(task.cancelled() for task in tasks)
