"""Ended Run objects without a row of their own: another run of their name has the row, or a tombstone.

The projection of Runs notes them, `api.maintenance.prune_objects` deletes them after their TTL. One that
ended as AlreadyExecuted stays as long as its Project: a GitOps tool would create it, and its pod, again.
"""

from dataclasses import dataclass
from datetime import datetime

from crds.kinds import DEPLOYMENT, PROJECT
from crds.objects import Run
from crds.reasons import RunReason
from crds.times import parse_time

MAX_STRAY_RUNS = 10_000
"""The next full list finds the others."""


@dataclass(frozen=True)
class StrayRun:
    """What is needed to delete the object; `place` is its namespace, None for the installation's own."""

    name: str
    uid: str
    version: str
    place: str | None
    project: str | None
    ended_at: datetime


class StrayRuns:
    """The stray Runs that were listed or watched and are not deleted yet."""

    def __init__(self) -> None:
        self._by_uid: dict[str, StrayRun] = {}

    def note(self, run: Run, place: str | None) -> None:
        """Note a Run that has no row, if it has ended and does not stay."""
        reason = (run.status.get("error") or {}).get("reason")
        has_owner = bool(run.owner_uid(PROJECT) or run.owner_uid(DEPLOYMENT))
        if not run.ended or (reason == RunReason.ALREADY_EXECUTED and has_owner):
            self.remove(run.uid)
            return
        if len(self._by_uid) >= MAX_STRAY_RUNS and run.uid not in self._by_uid:
            return
        completed = run.status.get("completionTime")
        self._by_uid[run.uid] = StrayRun(
            run.name,
            run.uid,
            run.resource_version,
            place,
            run.project,
            parse_time(completed) if completed else run.created,
        )

    def remove(self, uid: str) -> None:
        """Remove a Run whose object is gone, or has changed: another version of it is noted."""
        self._by_uid.pop(uid, None)

    def listed(self) -> tuple[StrayRun, ...]:
        """Return all of them."""
        return tuple(self._by_uid.values())
