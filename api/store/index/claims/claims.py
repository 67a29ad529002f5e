"""Claims as rows: which one pod was given a run, and what it reported. Called by the pods' routes.

A crew starts at most once, ever: the row of a claim is written once, in one
durable transaction, before the pod is told; nothing changes or deletes it.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, select, update

from api.store.index.claims.claim_decision import (
    NO_INPUT,
    Asked,
    Denied,
    Granted,
    Unknown,
    Wait,
    decide,
    no_input,
)
from api.store.index.claims.quota import free_places
from api.store.index.runs import counts
from api.store.index.runs.counts import Place
from api.store.index.runs.runs import ENDED
from api.store.sql.database import Database
from api.store.sql.generation_cache import Lasting
from api.store.sql.schema import claims, runs
from crds.limits import Plans

__all__ = ["Asked", "ClaimRow", "Claims", "Denied", "Granted", "Unknown", "Wait"]

RUNNING = "running"
HOLDERS = 10_000
"""Pods that are remembered as holding their run."""
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
).where(runs.c.namespace == bindparam("namespace"), runs.c.name == bindparam("run"))
_HOLDS = (
    select(claims.c.run)
    .join(runs, (runs.c.namespace == claims.c.namespace) & (runs.c.name == claims.c.run))
    .where(
        *_HERE,
        claims.c.pod_uid == bindparam("pod_uid"),
        claims.c.nonce == bindparam("nonce"),
        runs.c.hidden.is_(False),
        runs.c.status.not_in(ENDED),
    )
)


@dataclass(frozen=True)
class ClaimRow:
    """A claim to be written to its object."""

    run: str
    run_uid: str
    pod_uid: str
    granted_at: datetime
    result: Mapping[str, Any] | None


class Claims:
    """The table of claims of one namespace."""

    def __init__(self, database: Database, namespace: str, most: int) -> None:
        """`most`: bytes of an input that may stand in an object that others make."""
        self._database = database
        self._namespace = namespace
        self._most = most
        self._holders: Lasting[tuple[str, str, str], bool] = Lasting(lambda: database.generation, HOLDERS)
        self.waiting = asyncio.Event()
        """Set when there is something that `unwritten` gives."""
        self.in_hand: set[str] = set()
        """Runs whose result is being written by the call that brought it."""
        self.given_up = 0
        """Claims that their objects refused for good, since the start."""

    async def ask(
        self,
        run: str,
        asked: Asked,
        answer: Mapping[str, Any] | None,
        now: datetime,
        plans: Plans | None = None,
    ) -> Granted | Denied | Wait | Unknown:
        """Gives the run to the pod, once. Without an `answer` to give, only tells what was decided before,
        and Wait where there is no place; Unknown where it could be given.

        `plans` are the installation's: the places are counted in the transaction that gives one, so that
        there are never more claimed runs than the plan allows; None counts none.
        Raises StoreUnavailable; then nothing was given.
        """
        here = {"namespace": self._namespace, "run": run}
        # Only a first claim needs the writing connection: everything else can be read.
        brief = self._database.brief_read if answer is None else self._database.brief_write
        async with brief() as connection:
            row = (await connection.execute(_RUN, here)).one_or_none()
            claim = (await connection.execute(_CLAIM, here)).one_or_none()
            verdict = decide(row, claim, asked)
            if verdict == "same" and claim is not None and row is not None:
                return Granted(claim.answer, row.input, claim.granted_at, first=False)
            if verdict == "unknown" or row is None:
                return Unknown()
            if verdict == NO_INPUT:
                return Denied(no_input(self._most), nor_of_another=True)
            if verdict != "grant":
                return Denied(verdict)
            if plans and not await free_places(connection, self._namespace, row.project, plans):
                return Wait()
            if answer is None:
                return Unknown()
            await connection.execute(
                claims.insert().values(
                    namespace=self._namespace,
                    run=run,
                    run_uid=asked.run_uid,
                    pod_uid=asked.pod_uid,
                    nonce=asked.nonce,
                    granted_at=now,
                    answer=dict(answer),
                    written=False,
                    result_written=False,
                )
            )
            await connection.execute(
                update(runs)
                .where(runs.c.namespace == self._namespace, runs.c.name == run)
                .values(started_at=now, status=RUNNING)
            )
            # It runs from here on, for every reader at once, although its object says so a little later.
            before = Place(row.project, row.deployment, row.status)
            await counts.move(connection, self._namespace, before, replace(before, status=RUNNING))
            granted = Granted(answer, row.input, now, first=True)
        self.waiting.set()
        return granted

    async def holds(self, run: str, pod_uid: str, nonce: str) -> bool:
        """Whether this pod holds the run, which has not ended."""
        # A crew that prints asks at every line, and mostly nothing has changed since the last one.
        if self._holders.get((run, pod_uid, nonce)):
            return True
        before = self._holders.now()
        values = {"namespace": self._namespace, "run": run, "pod_uid": pod_uid, "nonce": nonce}
        async with self._database.brief_read() as connection:
            found = (await connection.execute(_HOLDS, values)).one_or_none() is not None
        if found:
            self._holders.put(before, (run, pod_uid, nonce), found)
        return found

    async def report(self, run: str, pod_uid: str, nonce: str, result: Mapping[str, Any]) -> bool | None:
        """Records what the pod reported, once; the same again is fine.

        Gives whether the object has it already, or None where this pod never held the run or reported
        something else before.
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
        """A run's claim, or None."""
        query = self._select().where(claims.c.run == run)
        async with self._database.brief_read() as connection:
            row = (await connection.execute(query)).one_or_none()
        return ClaimRow(**row._mapping) if row else None

    async def unwritten(self, limit: int) -> tuple[ClaimRow, ...]:
        """Claims and results that are not in their objects yet, oldest first."""
        query = self._select().where(claims.c.written.is_(False)).order_by(claims.c.granted_at).limit(limit)
        async with self._database.read() as connection:
            return tuple(ClaimRow(**row._mapping) for row in await connection.execute(query))

    async def written(self, run: str, result: bool) -> None:
        """The object has the claim, and with `result` the result too (or can no longer take them).

        A claim whose result came meanwhile stays unwritten: the index over that column is what keeps
        `unwritten` as fast after a million runs.
        """
        here = [claims.c.namespace == self._namespace, claims.c.run == run]
        if not result:
            here.append(claims.c.result.is_(None))
        values = {"written": True, **({"result_written": True} if result else {})}
        # Forgotten with the machine's power, it is written again, which changes nothing.
        async with self._database.brief_write(durable=False) as connection:
            await connection.execute(update(claims).where(*here).values(**values))

    def _select(self) -> Any:
        return select(
            claims.c.run, claims.c.run_uid, claims.c.pod_uid, claims.c.granted_at, claims.c.result
        ).where(claims.c.namespace == self._namespace)
