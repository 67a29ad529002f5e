"""Table of claims: the one pod that holds a run, and its reported result. Called by the pods' routes.

A crew starts at most once: the row of a claim is written once, in a durable transaction, before the response
to the pod; nothing changes or deletes it.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Integer, bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.claims.claim_decision import (
    NO_INPUT,
    Claimable,
    ClaimDenied,
    ClaimGranted,
    ClaimRequest,
    ClaimUnknown,
    ClaimWait,
    decide,
    no_input,
)
from api.store.index.runs import counts
from api.store.index.runs.counts import CountKey
from api.store.index.runs.run_queue import free_slots
from api.store.index.runs.runs import ENDED
from api.store.sql.database import Database
from api.store.sql.generation_cache import GenerationCache
from api.store.sql.schema import claims, runs
from crds.limits import Plans

__all__ = [
    "ClaimDenied",
    "ClaimGranted",
    "ClaimRequest",
    "ClaimRow",
    "ClaimUnknown",
    "ClaimWait",
    "Claimable",
    "Claims",
]

RUNNING = "running"
MAX_CACHED_HOLDERS = 10_000
"""Pods cached as holding their run."""
_OF_CLAIM = (runs.c.namespace == claims.c.namespace) & (runs.c.name == claims.c.run)
_HERE = (claims.c.namespace == bindparam("namespace"), claims.c.run == bindparam("run"))
_CLAIM = select(claims).where(*_HERE)
_RUN = select(
    runs.c.uid,
    runs.c.project,
    runs.c.deployment,
    runs.c.status,
    runs.c.cancel,
    runs.c.hidden,
    runs.c.withdrawn,
    runs.c.input,
    runs.c.entrypoint,
    runs.c.timeout,
    runs.c.config,
    runs.c.context,
    runs.c.traceparent,
).where(runs.c.namespace == bindparam("namespace"), runs.c.name == bindparam("run"))
_HOLDS = (
    select(claims.c.run)
    .join(runs, _OF_CLAIM)
    .where(
        *_HERE,
        claims.c.pod_uid == bindparam("pod_uid"),
        claims.c.nonce == bindparam("nonce"),
        runs.c.hidden.is_(False),
        runs.c.status.not_in(ENDED),
    )
)

_ROWS = select(
    claims.c.run,
    claims.c.run_uid,
    claims.c.pod_uid,
    claims.c.granted_at,
    claims.c.result,
    runs.c.object_namespace,
).select_from(claims.outerjoin(runs, _OF_CLAIM))
_BY_RUN = _ROWS.where(*_HERE)
_UNWRITTEN = (
    _ROWS.where(claims.c.namespace == bindparam("namespace"), claims.c.written.is_(False))
    .order_by(claims.c.granted_at)
    .limit(bindparam("most", type_=Integer))
)


@dataclass(frozen=True)
class ClaimRow:
    """A claim to be written to its object."""

    run: str
    run_uid: str
    pod_uid: str
    granted_at: datetime
    result: Mapping[str, Any] | None
    object_namespace: str | None = None
    """The namespace of the object; None for the installation's own."""


class Claims:
    """The claims of one namespace."""

    def __init__(self, database: Database, namespace: str, max_input_bytes: int) -> None:
        """`max_input_bytes`: limit of an input in an object that other clients create."""
        self._database = database
        self._namespace = namespace
        self._max_input_bytes = max_input_bytes
        self._holders: GenerationCache[tuple[str, str, str], bool] = GenerationCache(
            lambda: database.generation, MAX_CACHED_HOLDERS
        )
        self.waiting = asyncio.Event()
        """Set when `unwritten` has something to return."""
        self.reserved: set[str] = set()
        """Runs whose claim is written by the request that reports the result."""
        self.released: set[str] = set()
        """Runs whose request has ended since the outbox started its last read."""
        self.failed_writes = 0
        """Claims whose objects rejected the write permanently, since the start."""

    async def peek(
        self, run: str, request: ClaimRequest, plans: Plans | None = None
    ) -> ClaimGranted | ClaimDenied | ClaimWait | ClaimUnknown | Claimable:
        """Return an earlier decision, ClaimWait without a free slot, or Claimable. Writes nothing.

        Raises StoreUnavailable.
        """
        async with self._database.brief_read() as connection:
            return await self._decide(connection, run, request, plans)

    async def grant(
        self,
        run: str,
        request: ClaimRequest,
        response: Mapping[str, Any],
        now: datetime,
        plans: Plans | None = None,
    ) -> ClaimGranted | ClaimDenied | ClaimWait | ClaimUnknown:
        """Grant the run to the pod, once, with the `response` for the pod.

        `plans` are the installation's: slots are counted in the granting transaction, so claimed runs never
        exceed the plan; None disables the limit. Raises StoreUnavailable; nothing is granted then.
        """
        async with self._database.brief_write() as connection:
            decision = await self._decide(connection, run, request, plans)
            if not isinstance(decision, Claimable):
                return decision
            await connection.execute(
                claims.insert().values(
                    namespace=self._namespace,
                    run=run,
                    run_uid=request.run_uid,
                    pod_uid=request.pod_uid,
                    nonce=request.nonce,
                    granted_at=now,
                    answer=dict(response),
                    written=False,
                    result_written=False,
                )
            )
            await connection.execute(
                update(runs)
                .where(runs.c.namespace == self._namespace, runs.c.name == run)
                .values(started_at=now, status=RUNNING)
            )
            # Readers see the run as running from here on; its object follows a little later.
            before = CountKey(decision.project, decision.deployment, decision.status)
            await counts.move(connection, self._namespace, before, replace(before, status=RUNNING))
            granted = ClaimGranted(response, decision.input, now, first=True)
        self.waiting.set()
        return granted

    async def _decide(
        self, connection: AsyncConnection, run: str, request: ClaimRequest, plans: Plans | None
    ) -> ClaimGranted | ClaimDenied | ClaimWait | ClaimUnknown | Claimable:
        here = {"namespace": self._namespace, "run": run}
        row = (await connection.execute(_RUN, here)).one_or_none()
        claim = (await connection.execute(_CLAIM, here)).one_or_none()
        decision = decide(row, claim, request)
        if decision == "same" and claim is not None and row is not None:
            return ClaimGranted(claim.answer, row.input, claim.granted_at, first=False)
        if decision == "unknown" or row is None:
            return ClaimUnknown()
        if decision == NO_INPUT:
            return ClaimDenied(no_input(self._max_input_bytes), unclaimable=True)
        if decision != "grant":
            return ClaimDenied(decision)
        if plans and not await free_slots(connection, self._namespace, row.project, plans):
            return ClaimWait()
        return Claimable(
            row.project,
            row.deployment,
            row.status,
            row.input,
            row.entrypoint,
            row.timeout,
            row.config,
            row.context,
            row.traceparent,
        )

    async def holds(self, run: str, pod_uid: str, nonce: str) -> bool:
        """Return whether this pod holds the run and the run has not ended."""
        # Called for every line that a crew prints; mostly nothing has changed since the last call.
        if self._holders.get((run, pod_uid, nonce)):
            return True
        generation = self._holders.generation()
        values = {"namespace": self._namespace, "run": run, "pod_uid": pod_uid, "nonce": nonce}
        async with self._database.brief_read() as connection:
            is_holder = (await connection.execute(_HOLDS, values)).one_or_none() is not None
        if is_holder:
            self._holders.put(generation, (run, pod_uid, nonce), is_holder)
        return is_holder

    async def record_result(
        self, run: str, pod_uid: str, nonce: str, result: Mapping[str, Any]
    ) -> bool | None:
        """Record the pod's result, once; repeating the same one is allowed.

        Return whether the object has it already; None if this pod never held the run, or reported another
        result before.
        """
        here = (
            claims.c.namespace == self._namespace,
            claims.c.run == run,
            claims.c.pod_uid == pod_uid,
            claims.c.nonce == nonce,
        )
        async with self._database.brief_write() as connection:
            query = select(claims.c.result, claims.c.result_written).where(*here)
            row = (await connection.execute(query)).one_or_none()
            if row is None or (row.result is not None and row.result != result):
                return None
            if row.result is None:
                await connection.execute(
                    update(claims).where(*here).values(result=dict(result), written=False)
                )
            return bool(row.result_written)

    async def get(self, run: str) -> ClaimRow | None:
        """Return a run's claim, or None."""
        here = {"namespace": self._namespace, "run": run}
        async with self._database.brief_read() as connection:
            row = (await connection.execute(_BY_RUN, here)).one_or_none()
        return ClaimRow(**row._mapping) if row else None

    async def unwritten(self, limit: int) -> tuple[ClaimRow, ...]:
        """Return claims and results that are not in their objects yet, oldest first."""
        values = {"namespace": self._namespace, "most": limit}
        async with self._database.read() as connection:
            return tuple(ClaimRow(**row._mapping) for row in await connection.execute(_UNWRITTEN, values))

    async def mark_written(self, run: str, result: bool) -> None:
        """Record that the object has the claim, and with `result` the result (or can no longer take them).

        A claim whose result arrived meanwhile stays unwritten: the index on that column keeps `unwritten`
        fast after a million runs.
        """
        here = [claims.c.namespace == self._namespace, claims.c.run == run]
        if not result:
            here.append(claims.c.result.is_(None))
        values = {"written": True, **({"result_written": True} if result else {})}
        # If a power failure loses this, the object is written again, which changes nothing.
        async with self._database.brief_write(durable=False) as connection:
            await connection.execute(update(claims).where(*here).values(**values))
