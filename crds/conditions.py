"""Conditions as in the Kubernetes API conventions, and the condition types of Crewyard.

Called by the reconcilers, which write them, and by the projector, which reads them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crds.times import format_second

READY = "Ready"
"""Project: the source was resolved. Deployment: it is active or superseded and therefore usable."""
SOURCE_RESOLVED = "SourceResolved"
"""Project: the revision of the source is known."""
BUILT = "Built"
"""Deployment: the image is in the registry."""
SMOKE_TESTED = "SmokeTested"
"""Deployment with a smoke run: Unknown until that has ended, then True or False. Others do not have it."""
SUCCEEDED = "Succeeded"
"""Run: True after success, False after any other outcome, Unknown until then."""
COMPLETE = "Complete"
"""Run: True in any terminal phase."""
ADMITTED = "Admitted"
"""Run: False while it is queued."""
WAITING_FOR_INPUT = "WaitingForInput"
"""Run: present (and True) only while the crew waits for the answer of a person."""
LIMITED = "Limited"
"""Project: present (and True) only while it gets less than its spec asks for."""
WARM_PODS_FAILING = "WarmPodsFailing"
"""Project: present (and True) only while its waiting pods fail; runs start cold."""
BUDGET_EXCEEDED = "BudgetExceeded"
"""Project: present only from 80 % of its budget on; True once the budget is used and runs are refused."""
NOTIFICATIONS_FAILING = "NotificationsFailing"
"""Project: present (and True) only while a receiver of its notifications takes no message."""
SCHEDULES_INVALID = "SchedulesInvalid"
"""Project: present (and True) only while a schedule cannot be used and therefore starts no runs."""
RECONCILING = "Reconciling"
"""Present (and True) only while the controller makes progress (kstatus)."""
STALLED = "Stalled"
"""Present (and True) only where the controller cannot make progress without a change (kstatus)."""

NAME_TAKEN = "NameTaken"
"""Reason of Ready: a Project in another namespace has the name; the API does not show this one."""
SCHEDULE_INVALID = "ScheduleInvalid"
"""Reason of SchedulesInvalid and of an Event: the cron expression or the time zone of a schedule is wrong."""
MAX_MESSAGE = 8192


@dataclass(frozen=True)
class Condition:
    """One condition without its transition time.

    `since`: when it got its status, if that is written later; None: now.
    """

    type: str
    status: bool | None
    reason: str
    message: str
    since: datetime | None = None

    @property
    def status_text(self) -> str:
        """The status as text: True, False or Unknown."""
        return "Unknown" if self.status is None else str(self.status)


def merge(
    old: Iterable[Mapping[str, Any]], desired: Iterable[Condition], generation: int, now: datetime
) -> list[dict[str, Any]]:
    """Return the conditions to write: exactly the desired ones, in order.

    Keep `lastTransitionTime` where the status did not change (and the time is not the schema's default of
    1970); therefore an unchanged state gives an equal list.
    """
    before = {condition["type"]: condition for condition in old}
    merged = []
    for condition in desired:
        previous = before.get(condition.type, {})
        unchanged = previous.get("status") == condition.status_text and not str(
            previous.get("lastTransitionTime", "1970")
        ).startswith("1970")
        changed_at = format_second(condition.since or now)
        merged.append(
            {
                "type": condition.type,
                "status": condition.status_text,
                "reason": condition.reason,
                "message": condition.message[:MAX_MESSAGE],
                "lastTransitionTime": previous["lastTransitionTime"] if unchanged else changed_at,
                "observedGeneration": generation,
            }
        )
    return merged


def find(conditions: Iterable[Mapping[str, Any]], type_: str) -> Mapping[str, Any] | None:
    """Return the condition of that type, or None."""
    return next((condition for condition in conditions if condition.get("type") == type_), None)


def is_true(conditions: Iterable[Mapping[str, Any]], type_: str) -> bool:
    """Return whether the condition exists and is True."""
    condition = find(conditions, type_)
    return condition is not None and condition.get("status") == "True"
