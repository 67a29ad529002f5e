"""Leader election by a Lease in the namespace of the crews. Called by `controller.process`.

Every write of a controller has a precondition, so two active controllers do no harm: the election saves
the work of the second one. A leader that cannot reach the apiserver therefore stays leader until another
holds the Lease. A standby takes a Lease that it saw unchanged for its duration; it compares no clocks.
"""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import structlog

from crds import names
from crds.kinds import LEASE
from kube import errors
from kube.client import KubeClient, Object

log = structlog.get_logger("controller")

LEASE_NAME = names.CONTROLLER_LEASE
LEASE_SECONDS = 3
"""A standby takes over this long after the last renewal of a leader that was killed."""
RENEW_SECONDS = 1.0
"""Between two renewals, and between two looks of a standby."""


class LeadershipLost(Exception):
    """Another controller holds the Lease; restart this one as a standby."""


def may_take(lease: Mapping[str, Any], identity: str, unchanged_seconds: float) -> bool:
    """Return whether a Lease is free, our own, or was not renewed for its duration. Pure."""
    spec = lease.get("spec") or {}
    if (spec.get("holderIdentity") or "") in ("", identity):
        return True
    return unchanged_seconds >= int(spec.get("leaseDurationSeconds") or LEASE_SECONDS)


class LeaderElection:
    """One candidate; a restarted container of a pod keeps its `identity` and leads again immediately."""

    def __init__(self, kube: KubeClient, identity: str) -> None:
        self._kube = kube
        self._identity = identity
        self._lease: Object | None = None
        """The held Lease as last read or written; None while a write of it has no answer."""
        self.leading = False

    async def acquire(self) -> None:
        """Wait until this candidate leads."""
        seen_version, seen_at = "", time.monotonic()
        while not self.leading:
            try:
                async with asyncio.timeout(LEASE_SECONDS):
                    lease = await self._kube.get(LEASE, LEASE_NAME)
                    if lease is None:
                        lease = await self._kube.create(LEASE, {"metadata": {"name": LEASE_NAME}, "spec": {}})
                    version = lease["metadata"]["resourceVersion"]
                    if version != seen_version:
                        seen_version, seen_at = version, time.monotonic()
                    if may_take(lease, self._identity, time.monotonic() - seen_at):
                        await self._take(lease)
                        return
            except (errors.KubeError, TimeoutError) as error:
                log.warning("lease not acquired", error=str(error) or "timeout")
            await asyncio.sleep(RENEW_SECONDS)

    async def keep(self) -> None:
        """Renew the Lease until the task is cancelled. Raises LeadershipLost once another one holds it."""
        pause = RENEW_SECONDS
        while True:
            await asyncio.sleep(pause)
            pause = RENEW_SECONDS
            try:
                async with asyncio.timeout(LEASE_SECONDS):
                    await self._renew()
            except errors.KubeError as error:
                log.warning("lease not renewed", error=str(error))
            except TimeoutError:
                # A standby may take it from now on.
                pause = 0.0
                log.warning("lease not renewed", error="timeout")

    async def release(self) -> None:
        """Free the Lease for a standby, which then does not wait for its end."""
        if not self.leading:
            return
        self.leading = False
        try:
            async with asyncio.timeout(LEASE_SECONDS):
                await self._write(self._lease or await self._read_own(), {"holderIdentity": ""})
        except (errors.KubeError, LeadershipLost, TimeoutError) as error:
            log.info("lease not released", error=str(error) or "timeout")

    async def _take(self, lease: Object) -> None:
        transitions = int((lease.get("spec") or {}).get("leaseTransitions") or 0)
        self._lease = await self._write(
            lease,
            {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": LEASE_SECONDS,
                "acquireTime": _now(),
                "renewTime": _now(),
                "leaseTransitions": transitions + 1,
            },
        )
        self.leading = True
        log.info("leading", identity=self._identity)

    async def _renew(self) -> None:
        """Renew the Lease; read it first where a write without an answer may have changed it."""
        lease, self._lease = self._lease or await self._read_own(), None
        try:
            self._lease = await self._write(lease, {"renewTime": _now()})
        except (errors.KubeConflict, errors.KubeNotFound):
            self._lease = await self._write(await self._read_own(), {"renewTime": _now()})

    async def _read_own(self) -> Object:
        """Return the current Lease. Raises LeadershipLost if another one holds it."""
        lease = await self._kube.get(LEASE, LEASE_NAME)
        holder = ((lease or {}).get("spec") or {}).get("holderIdentity") or ""
        if lease is None or holder != self._identity:
            self.leading = False
            raise LeadershipLost(f"the Lease {LEASE_NAME} is held by {holder or 'nobody'}") from None
        return lease

    async def _write(self, lease: Object, spec: Mapping[str, Any]) -> Object:
        metadata = {"resourceVersion": lease["metadata"]["resourceVersion"]}
        return await self._kube.patch(LEASE, LEASE_NAME, {"metadata": metadata, "spec": spec})


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
