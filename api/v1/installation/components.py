"""Whether the parts of the installation work now. Called by the route of the installation."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.services import ApiServices
from api.store.errors import StoreUnavailable
from crds import names
from crds.kinds import LEASE
from crds.times import parse_time
from kube import errors as kube_errors

CHECK_TIMEOUT_SECONDS = 3.0
MAX_RENEWAL_AGE_SECONDS = 30.0
"""A controller renews its Lease every second; the clocks of two nodes may differ by seconds."""
NO_LEADER = "no controller is the leader; check the pods of the controller"
NOT_ANSWERING = "the kube-apiserver does not answer"


@dataclass(frozen=True)
class Component:
    """A part of the installation. `ready` None: nothing tells; `message` says why it is not ready."""

    name: str
    ready: bool | None
    message: str = ""


async def check_components(services: ApiServices) -> list[Component]:
    """Check the index, the kube-apiserver and the controller, each within three seconds."""
    index, cluster = await asyncio.gather(_index(services), _cluster(services))
    return [index, *cluster]


async def _index(services: ApiServices) -> Component:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
            await services.store.ready()
    except (StoreUnavailable, TimeoutError):
        return Component("index", False, "the index cannot be read or written")
    return Component("index", True)


async def _cluster(services: ApiServices) -> list[Component]:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
            lease = await services.kube.get(LEASE, names.CONTROLLER_LEASE)
    except (kube_errors.KubeUnavailable, TimeoutError):
        return [
            Component("kube-apiserver", False, NOT_ANSWERING),
            Component("controller", None, NOT_ANSWERING),
        ]
    except kube_errors.KubeError as error:
        # A role from before this check has no right to read the Lease.
        return [Component("kube-apiserver", True), Component("controller", None, error.message[:300])]
    if not services.caught_up():
        synced = Component("kube-apiserver", False, "the objects of the cluster are still being listed")
    else:
        synced = Component("kube-apiserver", True)
    return [synced, controller_of(lease, services.now())]


def controller_of(lease: Mapping[str, Any] | None, now: datetime) -> Component:
    """Return the state of the controller by its Lease. Pure."""
    spec = (lease or {}).get("spec") or {}
    holder, renewed = spec.get("holderIdentity"), spec.get("renewTime")
    if not holder or not renewed:
        return Component("controller", False, NO_LEADER)
    age = (now - parse_time(renewed)).total_seconds()
    if age > MAX_RENEWAL_AGE_SECONDS:
        return Component("controller", False, f"{NO_LEADER}; {holder} led until {renewed}")
    return Component("controller", True, f"{holder} leads")
