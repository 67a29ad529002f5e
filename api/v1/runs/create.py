"""Accepting a run: row first, then the object, then its uid into the row (nothing lost, nothing doubled).

Called by `POST /v1/runs`; what a crash left half done is completed by `api.projection.recover`.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from api.store.errors import Missing, StoreUnavailable
from api.store.index.idempotency import Idempotency
from api.store.index.runs import inputs
from api.store.index.runs.runs import RunDetail, RunRequest, new_name
from api.store.store import Store
from api.v1.runs import compensate
from crds import names
from crds.kinds import PROJECT, RUN
from crds.objects import Run
from kube import errors
from kube.client import Kube

__all__ = ["RunRequest", "accept_run", "complete"]

ATTEMPTS = 3
_INPUT = ("input", "inputRef")
PAUSE = 0.2
"""Seconds before the first repetition of a call that found no apiserver; doubled each time."""


async def accept_run(
    store: Store, kube: Kube, request: RunRequest, now: datetime, idempotency: Idempotency | None = None
) -> RunDetail:
    """Accepts a run once: the row, the object and its uid are all there when this returns.

    The same idempotency gives the run it made before. Raises StoreUnavailable; Missing where the project is
    gone; Taken for another body; kube.errors.Invalid where the object is refused (the row is withdrawn) and
    Unavailable. After that, too, and StoreUnavailable, the row is withdrawn, unless its object was seen or
    there is an idempotency key, with which the call can be repeated.
    """
    drawn = new_name()
    try:
        name, _ = await store.runs.accept(request, now, idempotency, drawn)
        row = await store.runs.get(name)
    except StoreUnavailable:
        if idempotency is None:
            compensate.later(store, drawn, now)
        raise
    if row is None:
        raise Missing("the run that this Idempotency-Key made is no longer there", "Idempotency-Key")
    if row.uid is not None:
        return row
    try:
        return await complete(store, kube, row, now)
    except (errors.Unavailable, StoreUnavailable):
        if idempotency is None and not await _withdrawn(store, name, now):
            # The object was made all the same, and seen: whoever is told otherwise starts a second run.
            seen = await store.runs.get(name)
            if seen is not None and seen.uid is not None:
                return seen
        raise
    except errors.KubeError:
        await store.runs.withdraw(name, now, gone=True)
        raise
    except Missing:
        await store.runs.withdraw(name, now, gone=True)
        raise


async def _withdrawn(store: Store, name: str, now: datetime) -> bool:
    """Whether it is taken back, now or once the store can be asked again."""
    try:
        return await store.runs.withdraw(name, now, gone=False)
    except StoreUnavailable:
        compensate.later(store, name, now)
        return True


async def complete(store: Store, kube: Kube, row: RunDetail, now: datetime) -> RunDetail:
    """Makes the object of an accepted row and records its uid; gives the row with it.

    May be repeated. Raises as `accept_run`.
    """
    project = await store.projects.get(row.project)
    if project is None:
        raise Missing(f"there is no project {row.project}", "deployment")
    body = manifest(row, project.uid, store.limits.input_inline_bytes)
    try:
        made = await _create(kube, body)
    except errors.AlreadyExists:
        found = await kube.get(RUN, row.name)
        if found is None or not _made_of(found["spec"], body["spec"], row.input):
            raise
        made = found
    run = Run(made)
    await store.record.observe(run, now)
    return replace(row, uid=run.uid)


def manifest(row: RunDetail, project_uid: str, inline: int) -> dict[str, Any]:
    """The Run object of an accepted row, the same each time; an input above `inline` bytes is named only."""
    spec: dict[str, Any] = {"project": row.project, "deployment": row.deployment}
    if row.input and (kept := inputs.reference(row.input, inline)):
        spec["inputRef"] = kept
    elif row.input:
        spec["input"] = dict(row.input)
    if row.entrypoint is not None:
        spec["entrypoint"] = row.entrypoint
    if row.timeout is not None:
        spec["timeout"] = row.timeout
    return {
        "metadata": {
            "name": row.name,
            "labels": {
                names.LABEL_PROJECT: row.project,
                names.LABEL_DEPLOYMENT: str(row.deployment),
                names.LABEL_MANAGED_BY: names.MANAGED_BY,
            },
            "ownerReferences": [
                {
                    "apiVersion": PROJECT.api_version,
                    "kind": PROJECT.name,
                    "name": row.project,
                    "uid": project_uid,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": spec,
    }


def _made_of(found: Mapping[str, Any], wanted: Mapping[str, Any], given: Mapping[str, Any] | None) -> bool:
    """Whether an object is the one that was to be made, with this input.

    It may have been canceled since, and made when other inputs stood in objects than do now.
    """
    if not inputs.same(_without(found, "cancel", *_INPUT), _without(wanted, *_INPUT)):
        return False
    if "inputRef" in found:
        return inputs.names(found["inputRef"], given or {})
    return inputs.same(found.get("input") or {}, given or {})


def _without(spec: Mapping[str, Any], *fields: str) -> dict[str, Any]:
    return {field: value for field, value in spec.items() if field not in fields}


async def _create(kube: Kube, body: dict[str, Any]) -> dict[str, Any]:
    pause = PAUSE
    for _ in range(ATTEMPTS - 1):
        try:
            return await kube.create(RUN, body)
        except errors.Unavailable:
            await asyncio.sleep(pause)
            pause *= 2
    return await kube.create(RUN, body)
