"""Background loops end on cancellation, even if a library loses one."""

import asyncio

from api.maintenance import loops


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
