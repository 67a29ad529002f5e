"""A list, then a watch, for ever: how the projector learns of every change of one kind.

Called by `api.maintenance.loops` once per kind. Each event is one transaction of its
own; what a gap hides is found by the next full list.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from api.store.errors import StoreUnavailable
from crds.kinds import Kind
from kube import errors
from kube.client import Kube, Listing, Object

log = structlog.get_logger()

MAX_PAUSE = 10.0
CERTAIN = 5
AGAIN = 1.0
"""Lists in a row, and seconds between them, after which etcd must have been restored from an older copy."""
RELIST = 1200.0
"""Seconds after which everything is listed again, whatever the watch said."""


@dataclass(frozen=True)
class Projection:
    """What is done with the objects of one kind.

    `known` gives uid and resourceVersion by name of what the index believes to be there; `forget`, where
    it keeps versions, makes it take any of an object as news.
    """

    kind: Kind
    apply: Callable[[Object], Awaitable[None]]
    gone: Callable[[str, str], Awaitable[None]]
    known: Callable[[], Awaitable[dict[str, tuple[str, int]]]]
    labels: str = ""
    forget: Callable[[], Awaitable[None]] | None = None


async def follow(
    kube: Kube, projection: Projection, listed: Callable[[], None], heard: Callable[[], None] = lambda: None
) -> None:
    """Keeps the index equal to the objects. Ends only by cancelling.

    Calls `listed` after each full list; `heard` then too, and after each message of the watch, of which
    there is one about every minute, and at its orderly end.
    """
    loop = asyncio.get_running_loop()
    pause = 0.1
    version: str | None = None
    expires = 0.0
    behind = 0
    while True:
        try:
            if version is None or loop.time() > expires:
                before = await projection.known()
                listing = await kube.list(projection.kind, labels=projection.labels)
                if projection.forget is not None and _behind(before, listing):
                    # Once, it could be a cache that lags: nothing may be taken as gone by that.
                    behind += 1
                    if behind < CERTAIN:
                        await asyncio.sleep(AGAIN)
                        continue
                    log.warning("the cluster was set back", kind=projection.kind.plural)
                    await projection.forget()
                behind = 0
                await level(projection, listing)
                version, expires = listing.resource_version, loop.time() + RELIST
                listed()
                heard()
            began = loop.time()
            async for event in kube.watch(projection.kind, version, labels=projection.labels):
                if event.type in ("ADDED", "MODIFIED"):
                    await _apply(projection, event.object)
                elif event.type == "DELETED":
                    await _apply(projection, event.object)
                    metadata = event.object["metadata"]
                    await projection.gone(metadata["name"], metadata["uid"])
                version = event.object["metadata"]["resourceVersion"]
                pause = 0.1
                heard()
            heard()
            if loop.time() - began < 1:
                await asyncio.sleep(0.5)
        except errors.Expired:
            version = None
        except (errors.KubeError, StoreUnavailable) as error:
            log.warning("projection interrupted", kind=projection.kind.plural, error=str(error))
            if not isinstance(error, errors.Unavailable):
                version = None
            await asyncio.sleep(pause * (0.5 + random.random()))
            pause = min(pause * 2, MAX_PAUSE)


async def level(projection: Projection, listing: Listing) -> None:
    """Applies a full list: what is new or newer, in order of creation, then what is known but absent."""
    known = await projection.known()
    found = {item["metadata"]["name"]: item for item in listing.items}
    for item in sorted(listing.items, key=_age):
        metadata = item["metadata"]
        uid, version = known.get(metadata["name"], ("", -1))
        if uid != metadata["uid"] or version < int(metadata["resourceVersion"]):
            await _apply(projection, item)
    for name, (uid, version) in known.items():
        here = found.get(name)
        # A row newer than the list was made after it.
        if (here is None or here["metadata"]["uid"] != uid) and version < int(listing.resource_version):
            await projection.gone(name, uid)


def _behind(before: dict[str, tuple[str, int]], listing: Listing) -> bool:
    """Whether a list is older than what was known before it was asked for."""
    newest = max((version for _, version in before.values()), default=0)
    return newest > int(listing.resource_version)


def _age(item: Object) -> tuple[str, str]:
    return item["metadata"]["creationTimestamp"], item["metadata"]["name"]


async def _apply(projection: Projection, item: Object) -> None:
    try:
        await projection.apply(item)
    except (errors.KubeError, StoreUnavailable):
        raise
    except Exception as error:
        # Whatever one object is like, it must not keep all others from being shown.
        log.error("object not projected", name=item["metadata"].get("name"), error=repr(error))
