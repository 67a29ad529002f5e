"""Writes the open questions of runs into the status of their objects. Called by `api.maintenance.loops`.

The rows are the outbox: what is not written yet is retried until it is, or the object can take it no more.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import structlog

from api.internal.outbox_backoff import OutboxBackoff
from api.store.errors import StoreUnavailable
from api.store.index.runs.input_requests import InputRequest
from api.store.store import Store
from crds.kinds import RUN
from crds.objects import Run
from crds.times import format_second
from kube import errors
from kube.client import KubeClient

log = structlog.get_logger()

POLL_SECONDS = 5.0
"""Poll interval; covers what another replica has left."""
BATCH_SIZE = 100
MAX_TEXT_CHARACTERS = 1024
"""Of a prompt and a refusal in an object; GET of the API has the whole prompt."""


async def deliver_all(store: Store, kube: KubeClient) -> None:
    """Write the open questions of all runs until cancelled."""
    backoff, timeout = OutboxBackoff(), POLL_SECONDS
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await store.input_requests.changed.wait()
        store.input_requests.changed.clear()
        timeout = await _deliver_batch(store, kube, backoff)


async def _deliver_batch(store: Store, kube: KubeClient, backoff: OutboxBackoff) -> float:
    """Write a batch of runs and return the seconds until the next; one that fails delays no other."""
    loop, limit = asyncio.get_running_loop(), BATCH_SIZE + len(backoff)
    try:
        unwritten = await store.input_requests.unwritten(limit)
        if len(unwritten) < limit:
            backoff.retain(unwritten)
        ready = [run for run in unwritten if backoff.is_due(run, loop.time())][:BATCH_SIZE]
        for run in ready:
            if await deliver(store, kube, run):
                backoff.remove(run)
            else:
                backoff.record_failure(run, loop.time(), invalid=False)
    except StoreUnavailable as error:
        log.warning("questions not read", error=str(error))
        return POLL_SECONDS
    if len(ready) == BATCH_SIZE:
        store.input_requests.changed.set()
    return backoff.pause_seconds(loop.time(), POLL_SECONDS)


async def deliver(store: Store, kube: KubeClient, run: str) -> bool:
    """Write the open questions of one run; return whether that needs no repetition."""
    row = await store.runs.get(run)
    shown = await store.input_requests.unanswered(run)
    if row is not None and not row.ended and row.uid is not None:
        kube = kube.at(row.object_namespace)
        try:
            try:
                await kube.patch(RUN, run, status_patch(row.uid, shown), "status")
            except (errors.KubeNotFound, errors.Invalid, errors.KubeConflict):
                if not is_final(row.uid, await kube.get(RUN, run)):
                    raise
        except errors.KubeError as error:
            log.warning("questions not written", run=run, error=str(error))
            return False
    await store.input_requests.mark_written(run, shown)
    return True


def is_final(uid: str, manifest: Mapping[str, Any] | None) -> bool:
    """Return whether the object needs no write: it has ended, is deleted or was recreated."""
    return manifest is None or Run(manifest).uid != uid or Run(manifest).ended


def status_patch(uid: str, requests: Sequence[InputRequest]) -> dict[str, Any]:
    """Return the merge patch of a run's open questions. The uid is a precondition: names can be reused."""
    return {"metadata": {"uid": uid}, "status": {"inputRequests": [_entry(item) for item in requests]}}


def _entry(request: InputRequest) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "request": request.id,
        "prompt": request.prompt[:MAX_TEXT_CHARACTERS],
        "time": format_second(request.created_at),
        "expirationTime": format_second(request.expires_at),
    }
    if request.refusal is not None:
        entry["refusal"] = request.refusal[:MAX_TEXT_CHARACTERS]
    return entry
