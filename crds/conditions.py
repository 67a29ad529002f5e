"""Conditions as Kubernetes' API conventions define them, and every type of ours.

Called by the reconcilers, which write them, and by the projector, which reads.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crds.times import format_second

READY = "Ready"
"""Project: the source was resolved. Deployment: it is active or superseded, that is usable."""
SOURCE_RESOLVED = "SourceResolved"
"""Project: the head of the source is known."""
BUILT = "Built"
"""Deployment: the image is in the registry."""
SUCCEEDED = "Succeeded"
"""Run: True after success, False after any other end, Unknown until then."""
COMPLETE = "Complete"
"""Run: True at any end."""
ADMITTED = "Admitted"
"""Run: False while it waits in the queue."""
RECONCILING = "Reconciling"
"""Present, and True, only while the controller is at work (kstatus)."""
STALLED = "Stalled"
"""Present, and True, only where the controller will not get further by itself (kstatus)."""

MAX_MESSAGE = 8192


@dataclass(frozen=True)
class Condition:
    """One aspect of an object's state, without its time."""

    type: str
    status: bool | None
    reason: str
    message: str

    @property
    def status_text(self) -> str:
        """True, False or Unknown."""
        return "Unknown" if self.status is None else str(self.status)


def merge(
    old: Iterable[Mapping[str, Any]], wanted: Iterable[Condition], generation: int, now: datetime
) -> list[dict[str, Any]]:
    """The list of conditions to write: exactly those wanted, in order.

    `lastTransitionTime` is kept where the status did not change (and was not the
    schema's default of 1970), so an unchanged state gives an equal list.
    """
    before = {condition["type"]: condition for condition in old}
    merged = []
    for condition in wanted:
        previous = before.get(condition.type, {})
        kept = previous.get("status") == condition.status_text and not str(
            previous.get("lastTransitionTime", "1970")
        ).startswith("1970")
        merged.append(
            {
                "type": condition.type,
                "status": condition.status_text,
                "reason": condition.reason,
                "message": condition.message[:MAX_MESSAGE],
                "lastTransitionTime": previous["lastTransitionTime"] if kept else format_second(now),
                "observedGeneration": generation,
            }
        )
    return merged


def find(conditions: Iterable[Mapping[str, Any]], type_: str) -> Mapping[str, Any] | None:
    """The condition of that type, or None."""
    return next((condition for condition in conditions if condition.get("type") == type_), None)


def is_true(conditions: Iterable[Mapping[str, Any]], type_: str) -> bool:
    """Whether the condition is there and True."""
    found = find(conditions, type_)
    return found is not None and found.get("status") == "True"
