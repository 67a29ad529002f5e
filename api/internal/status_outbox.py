"""Outbox of status writes: writes the claim and the result into a Run's status, each once.

The claim rows are the outbox: a claim that is not written yet is retried until it is written or its object
cannot take it any more. Called by `api.internal.result` and `api.maintenance.loops`.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from api.internal.outbox_backoff import OutboxBackoff
from api.store.errors import StoreUnavailable
from api.store.index.claims.claims import ClaimRow
from api.store.store import Store
from crds.kinds import RUN
from crds.times import format_time
from kube import errors
from kube.client import KubeClient

log = structlog.get_logger()

MAX_PARALLEL_WRITES = 16
BATCH_SIZE = 200
POLL_SECONDS = 5.0
"""Poll interval; covers lost notifications."""
MAX_BACKOFF_SECONDS = 5.0
COALESCE_WINDOW = timedelta(seconds=0.25)
"""Delay of a claim's write, so a result that arrives meanwhile goes into the same write."""


def status_patch(claim: ClaimRow) -> dict[str, Any]:
    """Return the merge patch of a claim and its result. The uid is a precondition: names can be reused."""
    status: dict[str, Any] = {
        "claim": {"podUid": claim.pod_uid, "time": format_time(claim.granted_at)},
    }
    if claim.result is not None:
        status["result"] = dict(claim.result)
    return {"metadata": {"uid": claim.run_uid}, "status": status}


def is_settled(claim: ClaimRow, manifest: Mapping[str, Any] | None) -> bool:
    """Return whether the object needs no write of this claim: it has ended, is deleted or was recreated."""
    if manifest is None or manifest["metadata"].get("uid") != claim.run_uid:
        return True
    status = manifest.get("status") or {}
    return status.get("phase") in ("Succeeded", "Failed", "Canceled")


def is_coalescing(claim: ClaimRow, now: datetime) -> bool:
    """Return whether to wait for the result; False if the clock was set back since the claim."""
    return claim.result is None and timedelta(0) <= now - claim.granted_at < COALESCE_WINDOW


async def deliver(store: Store, kube: KubeClient, claim: ClaimRow) -> None:
    """Write a claim into its object, once. Raises StoreUnavailable, KubeError: the caller retries."""
    kube = kube.at(claim.object_namespace)
    try:
        await kube.patch(RUN, claim.run, status_patch(claim), "status")
    except errors.KubeNotFound:
        pass
    except (errors.Invalid, errors.KubeConflict):
        if not is_settled(claim, await kube.get(RUN, claim.run)):
            raise
    await store.claims.mark_written(claim.run, result=claim.result is not None)


@contextmanager
def reserved(store: Store, run: str) -> Iterator[None]:
    """Reserve the writes of a run's claim for the caller. Start before the result is stored."""
    store.claims.reserved.add(run)
    try:
        yield
    finally:
        store.claims.reserved.discard(run)
        store.claims.released.add(run)


async def deliver_until(store: Store, kube: KubeClient, run: str, seconds: float) -> bool:
    """Write a reserved claim into its object with back-off. Return whether it succeeded within `seconds`."""
    backoff = 0.05
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        claim = await store.claims.get(run)
        if claim is None:
            return True
        try:
            await deliver(store, kube, claim)
            return True
        except errors.KubeError as error:
            log.warning("claim not written", run=run, error=str(error))
        if loop.time() + backoff > deadline:
            store.claims.waiting.set()
            return False
        await asyncio.sleep(backoff)
        backoff = min(backoff * 2, MAX_BACKOFF_SECONDS)


async def deliver_all(store: Store, kube: KubeClient) -> None:
    """Deliver all unwritten claims until cancelled."""
    semaphore = asyncio.Semaphore(MAX_PARALLEL_WRITES)
    backoff = OutboxBackoff()
    loop = asyncio.get_running_loop()
    timeout = POLL_SECONDS
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await store.claims.waiting.wait()
        store.claims.waiting.clear()
        store.claims.released.clear()
        try:
            # Delayed claims are among the oldest: read more rows, so they do not crowd out the others.
            limit = BATCH_SIZE + len(backoff)
            unwritten = await store.claims.unwritten(limit)
            if len(unwritten) < limit:
                # A result request may have written a claim that was delayed here.
                backoff.retain({claim.run for claim in unwritten})
            now = datetime.now(UTC)
            # A request that ended during the read may have written its claim since.
            elsewhere = store.claims.reserved | store.claims.released
            deliverable = [
                claim for claim in unwritten if not is_coalescing(claim, now) and claim.run not in elsewhere
            ]
            ready = [claim for claim in deliverable if backoff.is_due(claim.run, loop.time())][:BATCH_SIZE]
            await asyncio.gather(
                *(_deliver_or_back_off(store, kube, claim, semaphore, backoff) for claim in ready)
            )
        except StoreUnavailable as error:
            log.warning("outbox not read", error=str(error))
            timeout = POLL_SECONDS
            continue
        if len(ready) == BATCH_SIZE:
            store.claims.waiting.set()
        timeout = backoff.pause_seconds(loop.time(), POLL_SECONDS)
        if len(deliverable) < len(unwritten):
            timeout = min(timeout, COALESCE_WINDOW.total_seconds())


async def _deliver_or_back_off(
    store: Store, kube: KubeClient, claim: ClaimRow, semaphore: asyncio.Semaphore, backoff: OutboxBackoff
) -> None:
    async with semaphore:
        now = asyncio.get_running_loop().time()
        try:
            await deliver(store, kube, claim)
        except (errors.KubeError, StoreUnavailable) as error:
            if backoff.record_failure(claim.run, now, isinstance(error, errors.Invalid)):
                await _give_up(store, claim, error)
                backoff.remove(claim.run)
            else:
                log.warning("claim not written", run=claim.run, error=str(error))
        else:
            backoff.remove(claim.run)


async def _give_up(store: Store, claim: ClaimRow, error: Exception) -> None:
    """Give up a claim that its object never accepts; the pod's status then decides the run's outcome."""
    store.claims.failed_writes += 1
    log.error("claim given up: its object refuses it", run=claim.run, error=str(error))
    await store.claims.mark_written(claim.run, result=claim.result is not None)
