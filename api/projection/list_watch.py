"""List and watch of one kind, applied to the index. Called by `api.maintenance.loops` once per kind.

Each event is its own transaction. The next full list finds changes that a gap in the watch missed.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from api.store.errors import StoreUnavailable
from crds.kinds import Kind
from kube import errors
from kube.client import KubeClient, Listing, Object

log = structlog.get_logger()

MAX_BACKOFF_SECONDS = 10.0
STALE_LISTS_BEFORE_RESET = 5
STALE_LIST_RETRY_SECONDS = 1.0
"""Number of consecutive stale lists, and seconds between them, that prove a restore of etcd from a backup."""
RELIST_SECONDS = 1200.0
"""Interval of full lists, independent of the watch."""


@dataclass(frozen=True)
class Projection:
    """Callbacks that apply the objects of one kind to the index.

    `indexed` returns uid and resourceVersion by name of the objects in the index. `invalidate`, for kinds
    whose versions are stored, makes the index accept any version of an object as newer.
    """

    kind: Kind
    apply: Callable[[Object], Awaitable[None]]
    delete: Callable[[str, str], Awaitable[None]]
    indexed: Callable[[], Awaitable[dict[str, tuple[str, int]]]]
    labels: str = ""
    invalidate: Callable[[], Awaitable[None]] | None = None


async def list_and_watch(
    kube: KubeClient,
    projection: Projection,
    on_listed: Callable[[], None],
    on_event: Callable[[], None] = lambda: None,
) -> None:
    """Keep the index equal to the objects until cancelled.

    Call `on_listed` after each full list. Call `on_event` after each full list, after each watch event
    (there is at least one about every minute: bookmarks) and after a watch ends without error.
    """
    loop = asyncio.get_running_loop()
    backoff = 0.1
    version: str | None = None
    relist_at = 0.0
    stale_lists = 0
    while True:
        try:
            if version is None or loop.time() > relist_at:
                indexed = await projection.indexed()
                listing = await kube.list(projection.kind, labels=projection.labels)
                if projection.invalidate is not None and _is_stale(indexed, listing):
                    # A single stale list may come from a lagging cache; do not delete rows because of it.
                    stale_lists += 1
                    if stale_lists < STALE_LISTS_BEFORE_RESET:
                        await asyncio.sleep(STALE_LIST_RETRY_SECONDS)
                        continue
                    log.warning("cluster restored from an older backup", kind=projection.kind.plural)
                    await projection.invalidate()
                stale_lists = 0
                await apply_list(projection, listing)
                version, relist_at = listing.resource_version, loop.time() + RELIST_SECONDS
                on_listed()
                on_event()
            watch_started = loop.time()
            async for event in kube.watch(projection.kind, version, labels=projection.labels):
                if event.type in ("ADDED", "MODIFIED"):
                    await _apply(projection, event.object)
                elif event.type == "DELETED":
                    await _apply(projection, event.object)
                    metadata = event.object["metadata"]
                    await projection.delete(metadata["name"], metadata["uid"])
                version = event.object["metadata"]["resourceVersion"]
                backoff = 0.1
                on_event()
            on_event()
            if loop.time() - watch_started < 1:
                await asyncio.sleep(0.5)
        except errors.Expired:
            version = None
        except (errors.KubeError, StoreUnavailable) as error:
            log.warning("projection interrupted", kind=projection.kind.plural, error=str(error))
            if not isinstance(error, (errors.KubeUnavailable, StoreUnavailable)):
                version = None
            await asyncio.sleep(backoff * (0.5 + random.random()))
            backoff = min(backoff * 2, MAX_BACKOFF_SECONDS)


async def apply_list(projection: Projection, listing: Listing) -> None:
    """Apply new and newer objects in order of creation, then delete indexed objects missing from the list."""
    indexed = await projection.indexed()
    listed = {item["metadata"]["name"]: item for item in listing.items}
    for item in sorted(listing.items, key=_creation_order):
        metadata = item["metadata"]
        uid, version = indexed.get(metadata["name"], ("", -1))
        if uid != metadata["uid"] or version < int(metadata["resourceVersion"]):
            await _apply(projection, item)
    for name, (uid, version) in indexed.items():
        listed_item = listed.get(name)
        # A row newer than the list was created after it.
        if (listed_item is None or listed_item["metadata"]["uid"] != uid) and version < int(
            listing.resource_version
        ):
            await projection.delete(name, uid)


def _is_stale(indexed: dict[str, tuple[str, int]], listing: Listing) -> bool:
    """Return whether a list is older than the index was before the request."""
    newest = max((version for _, version in indexed.values()), default=0)
    return newest > int(listing.resource_version)


def _creation_order(item: Object) -> tuple[str, str]:
    return item["metadata"]["creationTimestamp"], item["metadata"]["name"]


async def _apply(projection: Projection, item: Object) -> None:
    try:
        await projection.apply(item)
    except (errors.KubeError, StoreUnavailable):
        raise
    except Exception as error:
        # One malformed object must not block the projection of all others.
        log.error("object not projected", name=item["metadata"].get("name"), error=repr(error))
