"""Performs Decisions: the one place of the controller that writes to the cluster.

Children first, so that what a status speaks of exists; then one status patch,
only where it differs and only if the object still is as it was read. Events follow
the write that they tell of at once: when a later one fails, what is done again is
not news any more. A status that the apiserver finds invalid is written in its least
form where it is an end, and else said by an Event and tried again ever more seldom.
Raises the errors of `kube.errors`: the reconcile is then done again from what is
there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from controller.observability.metrics import Metrics
from controller.runtime.cache import Known
from controller.runtime.decision import Create, Decision, Delete, Note, Patch, difference
from controller.runtime.errors import Retry
from controller.runtime.event_handlers import Observer
from controller.runtime.fallback_status import minimal_end
from controller.runtime.queues import Lanes
from controller.runtime.recorder import Recorder
from controller.runtime.workqueue import Key
from crds import kinds
from crds.kinds import Kind
from crds.objects import Object
from kube import errors
from kube.client import Kube

_WATCHED = (*kinds.OWN, kinds.POD)


@dataclass(frozen=True)
class Actor:
    """What performing needs; one per controller."""

    kube: Kube
    known: Known
    observer: Observer
    queue: Lanes
    recorder: Recorder
    metrics: Metrics

    async def seen(self, kind: Kind, name: str, by: Key) -> dict[str, Any] | None:
        """An object as it is known; one that is not, as the apiserver has it, or None.

        After a conflict we know nothing of what is there. `by` is the key that is being worked at.
        """
        found = self.known.get(kind, name)
        if found is None and (found := await self.kube.get(kind, name)) is not None:
            self.observer.saw(kind, found, by)
        return found

    async def create(self, child: Create, owner_uid: str) -> dict[str, Any]:
        """Creates a child, or finds it created already. Raises Retry while another one has its name."""
        try:
            made = await self.kube.create(child.kind, child.body)
            self.metrics.writes.labels(child.kind.plural, "create").inc()
        except errors.AlreadyExists:
            found = await self.kube.get(child.kind, child.name)
            # The name of a commit's Deployment says what it is, whoever made it.
            ours = child.kind == kinds.DEPLOYMENT
            if found is None or not (ours or owner_uid in Object(found).owner_uids):
                raise Retry(
                    f"{child.kind.name} {child.name} belongs to another object; waiting until it is gone"
                ) from None
            made = found
        self._learn(child.kind, made)
        return made

    async def delete(self, child: Delete) -> None:
        """Deletes a child; one that is gone or another one by now is left alone."""
        try:
            await self.kube.delete(child.kind, child.name, child.uid, grace_seconds=child.grace_seconds)
            self.metrics.writes.labels(child.kind.plural, "delete").inc()
        except errors.Conflict:
            return

    async def patch(self, patch: Patch, by: Key | None = None) -> dict[str, Any]:
        """Patches an object if it still has that resourceVersion. Raises Conflict.

        `by` is the key that is being worked at and needs no other look for it.
        """
        body = {
            **patch.body,
            "metadata": {**patch.body.get("metadata", {}), "resourceVersion": patch.resource_version},
        }
        try:
            changed = await self.kube.patch(patch.kind, patch.name, body, patch.subresource)
        except (errors.Conflict, errors.NotFound, errors.Invalid):
            # What we believe about it is wrong; the next look reads it from the apiserver.
            self._unlearn(patch.kind, patch.name)
            raise
        self.metrics.writes.labels(patch.kind.plural, "patch").inc()
        self._learn(patch.kind, changed, by)
        return changed

    async def perform(self, kind: Kind, obj: Mapping[str, Any], key: Key, decision: Decision) -> None:
        """Performs a Decision about `obj`."""
        view = Object(obj)
        # A decision about a Run is whole: what its own writes change asks for no other look at it.
        by = key if kind == kinds.RUN else None
        for child in decision.create:
            await self.create(child, view.uid)
            self._tell(kind, obj, child.events)
        for gone in decision.delete:
            await self.delete(gone)
            self._tell(kind, obj, gone.events)
        newest: dict[tuple[Kind, str], Mapping[str, Any]] = {(kind, view.name): obj}
        for patch in decision.before:
            await self._follow(patch, newest, by)
            self._tell(kind, obj, patch.events)
        if decision.status is not None:
            try:
                await self._write(kind, view.name, decision.status, newest, by)
            except errors.Invalid as error:
                await self._write_less(kind, obj, decision, error, newest)
        self._tell(kind, obj, decision.events)
        for patch in decision.after:
            await self._follow(patch, newest, by)
            self._tell(kind, obj, patch.events)
        for other in decision.enqueue:
            self.queue.add(other)
        if decision.requeue_after is not None:
            self.queue.add(key, max(decision.requeue_after, 0.001))

    def _tell(self, kind: Kind, obj: Mapping[str, Any], notes: Iterable[Note]) -> None:
        now = datetime.now(UTC)
        for note in notes:
            self.recorder.note(kind, obj, note, now)

    async def _write(
        self,
        kind: Kind,
        name: str,
        status: Mapping[str, Any],
        newest: dict[tuple[Kind, str], Mapping[str, Any]],
        by: Key | None = None,
    ) -> None:
        change = difference(Object(newest[kind, name]).status, status)
        if change:
            await self._follow(Patch(kind, name, {"status": change}, ""), newest, by)

    async def _write_less(
        self,
        kind: Kind,
        obj: Mapping[str, Any],
        decision: Decision,
        refusal: errors.Invalid,
        newest: dict[tuple[Kind, str], Mapping[str, Any]],
    ) -> None:
        """Another status than the one that is invalid. Raises `refusal` where none is left."""
        note = Note("StatusRefused", f"the status could not be written: {refusal.message}", True)
        self._tell(kind, obj, [note])
        instead = decision.instead
        for status in (instead, minimal_end(instead or decision.status or {})):
            if status is None:
                continue
            try:
                await self._write(kind, Object(obj).name, status, newest)
            except errors.Invalid:
                continue
            self.metrics.refused.labels(kind.plural, "reduced").inc()
            return
        self.metrics.refused.labels(kind.plural, "retried").inc()
        raise refusal

    async def _follow(
        self, patch: Patch, newest: dict[tuple[Kind, str], Mapping[str, Any]], by: Key | None
    ) -> None:
        """Applies one of several patches; what an earlier one of them changed is no conflict."""
        before = newest.get((patch.kind, patch.name))
        if before is not None:
            patch = replace(patch, resource_version=Object(before).resource_version)
        newest[patch.kind, patch.name] = await self.patch(patch, by)

    def _learn(self, kind: Kind, obj: Mapping[str, Any], by: Key | None = None) -> None:
        # As if the watch had shown it, which will then be no news: others may wait for this change.
        if kind in _WATCHED:
            self.observer.saw(kind, obj, by)

    def _unlearn(self, kind: Kind, name: str) -> None:
        if kind in _WATCHED:
            self.known.remove(kind, name)
