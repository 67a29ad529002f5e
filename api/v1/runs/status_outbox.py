"""What the facade writes into a Run's status: the claim and the result, each once.

The rows of claims are the outbox: what is not in its object yet is tried again
until it is, or can no longer be. Called by the pods' routes and `api.maintenance.loops`.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from api.store.errors import StoreUnavailable
from api.store.index.claims.claims import ClaimRow
from api.store.store import Store
from api.v1.runs.outbox_backoff import Pace
from crds.kinds import RUN
from crds.times import format_time
from kube import errors
from kube.client import Kube

log = structlog.get_logger()

AT_ONCE = 16
BATCH = 200
LOOK = 5.0
"""Seconds between looks when nothing rings."""
MAX_PAUSE = 5.0
BRIEF = timedelta(seconds=0.25)
"""A claim is written so long after it was given, with the result if that has come: one write for both."""


def patch(claim: ClaimRow) -> dict[str, Any]:
    """The merge patch of a claim and its result; the uid is a precondition, for a name may be made anew."""
    status: dict[str, Any] = {
        "claim": {"podUid": claim.pod_uid, "time": format_time(claim.granted_at)},
    }
    if claim.result is not None:
        status["result"] = dict(claim.result)
    return {"metadata": {"uid": claim.run_uid}, "status": status}


def settled(claim: ClaimRow, found: Mapping[str, Any] | None) -> bool:
    """Whether the object, as it is now, takes no more of this claim: it has it, ended, or is another one."""
    if found is None or found["metadata"].get("uid") != claim.run_uid:
        return True
    status = found.get("status") or {}
    return status.get("phase") in ("Succeeded", "Failed", "Canceled")


def young(claim: ClaimRow, now: datetime) -> bool:
    """Whether the result may still come with the claim; not where the clock was set back since."""
    return claim.result is None and timedelta(0) <= now - claim.granted_at < BRIEF


async def deliver(store: Store, kube: Kube, claim: ClaimRow) -> None:
    """One try to bring a claim into its object. Raises StoreUnavailable, KubeError: repeat it then."""
    try:
        await kube.patch(RUN, claim.run, patch(claim), "status")
    except errors.NotFound:
        pass
    except (errors.Invalid, errors.Conflict):
        if not settled(claim, await kube.get(RUN, claim.run)):
            raise
    await store.claims.written(claim.run, result=claim.result is not None)


async def deliver_until(store: Store, kube: Kube, run: str, seconds: float) -> bool:
    """Brings a run's claim into its object, repeated with back-off; whether it is there in `seconds`."""
    store.claims.in_hand.add(run)
    try:
        return await _until(store, kube, run, seconds)
    finally:
        store.claims.in_hand.discard(run)


async def _until(store: Store, kube: Kube, run: str, seconds: float) -> bool:
    pause = 0.05
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        claim = await store.claims.get(run)
        if claim is None:
            return True
        try:
            await deliver(store, kube, claim)
            return True
        except errors.KubeError as error:
            log.warning("claim not written", run=run, error=str(error))
        if loop.time() + pause > end:
            store.claims.waiting.set()
            return False
        await asyncio.sleep(pause)
        pause = min(pause * 2, MAX_PAUSE)


async def deliver_all(store: Store, kube: Kube) -> None:
    """Delivers whatever is waiting, for ever; ends only by being cancelled."""
    turns = asyncio.Semaphore(AT_ONCE)
    pace = Pace()
    loop = asyncio.get_running_loop()
    pause = LOOK
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await store.claims.waiting.wait()
        store.claims.waiting.clear()
        try:
            # Those that are put off are among the oldest: they must not take the places of the others.
            most = BATCH + len(pace)
            waiting = await store.claims.unwritten(most)
            if len(waiting) < most:
                # The answer to a pod may have written what was put off here.
                pace.keep({claim.run for claim in waiting})
            now = datetime.now(UTC)
            old = [one for one in waiting if not young(one, now) and one.run not in store.claims.in_hand]
            ready = [claim for claim in old if pace.due(claim.run, loop.time())][:BATCH]
            await asyncio.gather(*(_try(store, kube, claim, turns, pace) for claim in ready))
        except StoreUnavailable as error:
            log.warning("outbox not read", error=str(error))
            pause = LOOK
            continue
        if len(ready) == BATCH:
            store.claims.waiting.set()
        again = pace.next()
        pause = LOOK if again is None else min(LOOK, max(again - loop.time(), 0.05))
        if len(old) < len(waiting):
            pause = min(pause, BRIEF.total_seconds())


async def _try(store: Store, kube: Kube, claim: ClaimRow, turns: asyncio.Semaphore, pace: Pace) -> None:
    async with turns:
        now = asyncio.get_running_loop().time()
        try:
            await deliver(store, kube, claim)
        except (errors.KubeError, StoreUnavailable) as error:
            if pace.failed(claim.run, now, isinstance(error, errors.Invalid)):
                await _give_up(store, claim, error)
                pace.settled(claim.run)
            else:
                log.warning("claim not written", run=claim.run, error=str(error))
        else:
            pace.settled(claim.run)


async def _give_up(store: Store, claim: ClaimRow, error: Exception) -> None:
    """The object will never take it; the run ends by what is seen of its pod."""
    store.claims.given_up += 1
    log.error("claim given up: its object refuses it", run=claim.run, error=str(error))
    await store.claims.written(claim.run, result=claim.result is not None)
