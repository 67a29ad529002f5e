"""Creation of a run: first the row, then the object, then its uid in the row; no run is lost or duplicated.

Called by `POST /v1/runs`. `api.projection.recover` completes runs that a crash left unfinished.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from api.store.errors import Missing, StoreUnavailable
from api.store.index.audit.change import describe
from api.store.index.idempotency import Idempotency
from api.store.index.runs import inputs
from api.store.index.runs.runs import RunDetail, RunRequest, new_name
from api.store.store import Store
from api.v1.runs import withdraw
from crds import names
from crds.kinds import PROJECT, RUN
from crds.objects import Run
from kube import errors
from kube.client import KubeClient

__all__ = ["RunRequest", "complete", "create_run", "ensure_object"]

MAX_ATTEMPTS = 3
_INPUT_FIELDS = ("input", "inputRef")
FIRST_BACKOFF_SECONDS = 0.2
"""Delay before the first retry if the apiserver is unavailable; doubled each time."""


async def create_run(
    store: Store, kube: KubeClient, request: RunRequest, now: datetime, idempotency: Idempotency | None = None
) -> RunDetail:
    """Create a run once. When this returns, the row, the object and its uid are stored.

    A repeated idempotency key returns the run it created before. Raises Missing if the project is deleted,
    StoreConflict for another body, kube.errors.Invalid if the apiserver rejects the object (the row is
    withdrawn), kube.errors.KubeUnavailable and StoreUnavailable. After the last two the row is withdrawn too,
    unless its object was seen or an idempotency key lets the client repeat the call.
    """
    generated_name = new_name()
    describe(request.project, names.id_of(generated_name))
    try:
        name, accepted = await store.runs.create(request, now, idempotency, generated_name)
        row = await store.runs.get(name) if accepted is None else accepted.row
    except StoreUnavailable:
        if idempotency is None:
            withdraw.withdraw_later(store, generated_name, now)
        raise
    if row is None:
        raise Missing(
            "the run created with this Idempotency-Key no longer exists; use a new key to start another run",
            "Idempotency-Key",
        )
    if row.uid is not None:
        return row
    try:
        return await complete(store, kube, row, now, accepted.project_uid if accepted else None)
    except (errors.KubeUnavailable, StoreUnavailable):
        if idempotency is None and not await _try_withdraw(store, name, now):
            # The object exists: an error response would make the client start a second run.
            existing = await store.runs.get(name)
            if existing is not None and existing.uid is not None:
                return existing
        raise


async def complete(
    store: Store,
    kube: KubeClient,
    row: RunDetail,
    now: datetime,
    project_uid: str | None = None,
    claims_not_before: datetime | None = None,
) -> RunDetail:
    """Create the object of an accepted run like `ensure_object`; withdraw a run whose object is refused.

    `claims_not_before`: when the index was restored. An older run may have ended since the backup: link its
    object, or withdraw the run if there is none. A new object would start the crew again.
    """
    if claims_not_before is not None and row.created_at < claims_not_before:
        existing = await kube.at(row.object_namespace).get(RUN, row.name)
        if existing is None:
            # The idempotency key stays: a repeated call would start the crew again, too.
            await store.runs.withdraw(row.name, now, object_absent=False, keep_key=True)
            raise Missing(
                "the run created with this Idempotency-Key has no object since the restore of the service's "
                "index; use a new key to start another run",
                "Idempotency-Key",
            )
        run = Run(existing)
        await store.run_writer.observe(run, now)
        return replace(row, uid=run.uid)
    try:
        return await ensure_object(store, kube, row, now, project_uid)
    except errors.KubeUnavailable:
        raise
    except (errors.KubeError, Missing):
        await store.runs.withdraw(row.name, now, object_absent=True)
        raise


async def _try_withdraw(store: Store, name: str, now: datetime) -> bool:
    """Withdraw the run, now or once the store is available. Return False if its object exists."""
    try:
        return await store.runs.withdraw(name, now, object_absent=False)
    except StoreUnavailable:
        withdraw.withdraw_later(store, name, now)
        return True


async def ensure_object(
    store: Store, kube: KubeClient, row: RunDetail, now: datetime, project_uid: str | None = None
) -> RunDetail:
    """Create the object of a row, record its uid and return the row with it. Idempotent.

    `project_uid` comes from the insert of the row; without it the project is read. Raises like `create_run`.
    """
    if project_uid is None:
        project = await store.projects.get(row.project)
        if project is None:
            raise Missing(f"project {row.project} not found; create it with POST /v1/projects", "deployment")
        project_uid = project.uid
    kube = kube.at(row.object_namespace)
    body = manifest(row, project_uid, store.limits.input_inline_bytes)
    try:
        created = await _create_with_retry(kube, body)
    except errors.AlreadyExists:
        existing = await kube.get(RUN, row.name)
        if existing is None or not _matches(existing["spec"], body["spec"], row.input):
            raise
        created = existing
    run = Run(created)
    await store.run_writer.link(run, now)
    return replace(row, uid=run.uid)


def manifest(row: RunDetail, project_uid: str, max_inline_bytes: int) -> dict[str, Any]:
    """Return the Run object of a row, deterministic. Reference an input above `max_inline_bytes`."""
    spec: dict[str, Any] = {"project": row.project, "deployment": row.deployment}
    if row.input and (reference := inputs.reference(row.input, max_inline_bytes)):
        spec["inputRef"] = reference
    elif row.input:
        spec["input"] = dict(row.input)
    if row.entrypoint is not None:
        spec["entrypoint"] = row.entrypoint
    if row.timeout is not None:
        spec["timeout"] = row.timeout
    for field, value in (("config", row.config), ("context", row.context)):
        if value is not None:
            spec[field] = dict(value)
    known = {
        names.ANNOTATION_CREATED_BY: row.created_by,
        names.ANNOTATION_RERUN_OF: row.rerun_of,
        names.ANNOTATION_TRACEPARENT: row.traceparent,
    }
    annotations = {name: value for name, value in known.items() if value}
    return {
        "metadata": {
            "name": row.name,
            "labels": {
                **(row.labels or {}),
                names.LABEL_PROJECT: row.project,
                names.LABEL_DEPLOYMENT: str(row.deployment),
                names.LABEL_MANAGED_BY: names.MANAGED_BY,
            },
            **({"annotations": annotations} if annotations else {}),
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


def _matches(
    actual: Mapping[str, Any], desired: Mapping[str, Any], run_input: Mapping[str, Any] | None
) -> bool:
    """Return whether an existing object equals the desired one, with this input.

    It may be canceled since. Its input may be inline or a reference, since that limit can change.
    """
    if not inputs.is_equal(_without(actual, "cancel", *_INPUT_FIELDS), _without(desired, *_INPUT_FIELDS)):
        return False
    if "inputRef" in actual:
        return inputs.refers_to(actual["inputRef"], run_input or {})
    return inputs.is_equal(actual.get("input") or {}, run_input or {})


def _without(spec: Mapping[str, Any], *fields: str) -> dict[str, Any]:
    return {field: value for field, value in spec.items() if field not in fields}


async def _create_with_retry(kube: KubeClient, body: dict[str, Any]) -> dict[str, Any]:
    backoff = FIRST_BACKOFF_SECONDS
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return await kube.create(RUN, body)
        except errors.KubeUnavailable:
            await asyncio.sleep(backoff)
            backoff *= 2
    return await kube.create(RUN, body)
