"""Apply Decisions: the only module of the controller that writes to the cluster.

It creates children first, so objects that a status names exist; then it writes one status patch,
only if it differs and only if the object is unchanged since it was read. It records Events right
after the write they report: a retry after a later failure does not repeat them. If the apiserver
rejects a status as invalid, a final status is written in its minimal form; any other is reported
by an Event and retried with back-off. Raises `kube.errors`; the worker then reconciles again.
Called by the reconcilers.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from controller.observability.metrics import ControllerMetrics
from controller.project_names import UNSHARED, NamespaceProjectNames
from controller.runtime import event_map
from controller.runtime.cache import ObjectCache
from controller.runtime.decision import Create, Decision, Delete, ObjectEvent, Patch, difference
from controller.runtime.errors import Retry
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.fallback_status import minimal_status
from controller.runtime.queues import Queues
from controller.runtime.recorder import Recorder
from controller.runtime.workqueue import ReconcileKey
from crds import kinds
from crds.kinds import Kind
from crds.objects import Object
from kube import errors
from kube.client import KubeClient

_WATCHED = (*kinds.OWN_KINDS, kinds.POD)


@dataclass(frozen=True)
class Applier:
    """Reads from cache or apiserver and applies Decisions; one per namespace."""

    kube: KubeClient
    cache: ObjectCache
    handlers: EventHandlers
    queues: Queues
    recorder: Recorder
    metrics: ControllerMetrics
    project_names: NamespaceProjectNames = UNSHARED

    async def get(self, kind: Kind, name: str, by: ReconcileKey) -> dict[str, Any] | None:
        """Return an object from the cache, else from the apiserver, or None; no Project whose name is taken.

        After a conflict the cache has no version. `by` is the key being reconciled.
        """
        if self.is_hidden(kind, name):
            return None
        obj = self.cache.get(kind, name)
        if obj is None and (obj := await self.kube.get(kind, name)) is not None:
            self.handlers.on_change(kind, obj, by)
        return obj

    async def get_own_project(self, name: str, by: ReconcileKey) -> dict[str, Any] | None:
        """Return a Project, or None; also one whose name is taken, to delete what it has started."""
        if self.is_hidden(kinds.PROJECT, name):
            return await self.kube.get(kinds.PROJECT, name)
        return await self.get(kinds.PROJECT, name, by)

    def is_hidden(self, kind: Kind, name: str) -> bool:
        """Return whether this is a Project whose name another namespace has: it is treated as absent."""
        return kind == kinds.PROJECT and self.project_names.is_taken(name)

    async def create(self, child: Create, owner_uid: str) -> dict[str, Any]:
        """Create a child or adopt an existing one. Raises Retry while another object has its name."""
        try:
            created = await self.kube.create(child.kind, child.body)
            self.metrics.writes.labels(child.kind.plural, "create").inc()
        except errors.AlreadyExists:
            existing = await self.kube.get(child.kind, child.name)
            # The name of a commit's Deployment identifies its content, so any creator will do.
            adoptable = child.kind == kinds.DEPLOYMENT
            if existing is None or not (adoptable or owner_uid in Object(existing).owner_uids):
                raise Retry(
                    f"{child.kind.name} {child.name} belongs to another object; waiting until it is deleted"
                ) from None
            created = existing
        except (errors.KubeForbidden, errors.Invalid, errors.WebhookUnavailable) as error:
            # The denial or the failure of an admission webhook does not say what it concerns.
            error.details = {"kind": child.kind.plural, **error.details}
            raise
        self._observe(child.kind, created)
        return created

    async def delete(self, child: Delete) -> None:
        """Delete a child; ignore one that is gone, was replaced, or is not as the Decision saw it."""
        try:
            await self.kube.delete(
                child.kind, child.name, child.uid, child.resource_version, child.grace_seconds
            )
            self.metrics.writes.labels(child.kind.plural, "delete").inc()
        except errors.KubeConflict:
            return

    async def patch(self, patch: Patch, by: ReconcileKey | None = None) -> dict[str, Any]:
        """Patch an object if it still has that resourceVersion. Raises KubeConflict.

        `by` is the key being reconciled; the change does not enqueue it again.
        """
        body = {
            **patch.body,
            "metadata": {**patch.body.get("metadata", {}), "resourceVersion": patch.resource_version},
        }
        try:
            changed = await self.kube.patch(patch.kind, patch.name, body, patch.subresource)
        except (errors.KubeConflict, errors.KubeNotFound, errors.Invalid) as error:
            # The cached version is stale; the next reconcile reads from the apiserver.
            self._discard(patch.kind, patch.name, error)
            raise
        self.metrics.writes.labels(patch.kind.plural, "patch").inc()
        self._observe(patch.kind, changed, by)
        return changed

    async def apply(
        self,
        kind: Kind,
        obj: Mapping[str, Any],
        key: ReconcileKey,
        decision: Decision,
        on_status: Callable[[], None] = lambda: None,
    ) -> None:
        """Apply a Decision about `obj`; call `on_status` after the status, even if a later write fails."""
        view = Object(obj)
        # A decision about a Run or about schedules is complete: its own writes need no further reconcile.
        by = key if kind == kinds.RUN or key.plural == event_map.SCHEDULES else None
        for child in decision.create:
            await self.create(child, view.uid)
            self.record(kind, obj, child.events)
        await self._delete_all(kind, obj, decision.delete)
        newest: dict[tuple[Kind, str], Mapping[str, Any]] = {(kind, view.name): obj}
        for patch in decision.before:
            await self._patch_next(patch, newest, by)
            self.record(kind, obj, patch.events)
        if decision.status is not None:
            try:
                await self._write_status(kind, view.name, decision.status, newest, by)
            except errors.Invalid as error:
                await self._write_fallback(kind, obj, decision, error, newest)
        on_status()
        self.record(kind, obj, decision.events)
        for patch in decision.after:
            await self._patch_next(patch, newest, by)
            self.record(kind, obj, patch.events)
        await self._delete_all(kind, obj, decision.delete_last)
        for other in decision.enqueue:
            self.queues.add(other)
        if decision.requeue_after is not None:
            self.queues.add(key, max(decision.requeue_after, 0.001))

    def record(self, kind: Kind, obj: Mapping[str, Any], notes: Iterable[ObjectEvent]) -> None:
        """Record Events about an object, in the background."""
        now = datetime.now(UTC)
        for note in notes:
            self.recorder.record(kind, obj, note, now)

    async def _delete_all(self, kind: Kind, obj: Mapping[str, Any], deletions: Iterable[Delete]) -> None:
        for deletion in deletions:
            await self.delete(deletion)
            self.record(kind, obj, deletion.events)

    async def _write_status(
        self,
        kind: Kind,
        name: str,
        status: Mapping[str, Any],
        newest: dict[tuple[Kind, str], Mapping[str, Any]],
        by: ReconcileKey | None = None,
    ) -> None:
        change = difference(Object(newest[kind, name]).status, status)
        if change:
            await self._patch_next(Patch(kind, name, {"status": change}, ""), newest, by)

    async def _write_fallback(
        self,
        kind: Kind,
        obj: Mapping[str, Any],
        decision: Decision,
        refusal: errors.Invalid,
        newest: dict[tuple[Kind, str], Mapping[str, Any]],
    ) -> None:
        """Write a fallback for an invalid status. Raises `refusal` if every fallback is invalid too."""
        note = ObjectEvent("StatusRefused", f"The apiserver rejected the status: {refusal.message}", True)
        self.record(kind, obj, [note])
        instead = decision.fallback_status
        for status in (instead, minimal_status(instead or decision.status or {})):
            if status is None:
                continue
            try:
                await self._write_status(kind, Object(obj).name, status, newest)
            except errors.Invalid:
                continue
            self.metrics.invalid_statuses.labels(kind.plural, "reduced").inc()
            return
        self.metrics.invalid_statuses.labels(kind.plural, "retried").inc()
        raise refusal

    async def _patch_next(
        self, patch: Patch, newest: dict[tuple[Kind, str], Mapping[str, Any]], by: ReconcileKey | None
    ) -> None:
        """Apply one of several patches; changes by earlier patches of the sequence are not conflicts."""
        before = newest.get((patch.kind, patch.name))
        if before is not None:
            patch = replace(patch, resource_version=Object(before).resource_version)
        try:
            newest[patch.kind, patch.name] = await self.patch(patch, by)
        except errors.KubeNotFound as error:
            raise Retry(f"{patch.kind.name} {patch.name} was deleted before its patch") from error

    def _observe(self, kind: Kind, obj: Mapping[str, Any], by: ReconcileKey | None = None) -> None:
        # Same as a watch event, which is then a duplicate: other keys may wait for this change.
        if kind in _WATCHED:
            self.handlers.on_change(kind, obj, by)

    def _discard(self, kind: Kind, name: str, error: errors.KubeError) -> None:
        if kind in (kinds.DEPLOYMENT, kinds.RUN) and not isinstance(error, errors.KubeNotFound):
            # Deployments of the same source search the cache for this one's build; schedules count Runs.
            self.cache.mark_stale(kind, name)
        elif kind in _WATCHED:
            self.cache.remove(kind, name)
