"""Record of failing notifications on their Projects, where the controller reads it. Called by `loops`.

The index has their names; the controller makes the condition NotificationsFailing of them. While they stay
the same, they are written again every ten minutes, since `kubectl replace` removes the annotation.
"""

from datetime import datetime

import structlog

from api.maintenance.record_budgets import REWRITE_SECONDS
from api.store.store import Store
from crds.kinds import PROJECT
from crds.names import ANNOTATION_FAILING_NOTIFICATIONS
from kube import errors
from kube.client import KubeClient

log = structlog.get_logger()


class FailingNotificationsRecorder:
    """Writes the annotation of each Project with a failing notification, and remembers what it wrote."""

    def __init__(self, store: Store, kube: KubeClient) -> None:
        self._store = store
        self._kube = kube
        self._written: dict[str, str] = {}

    async def record_all(self, now: datetime) -> None:
        """Write what has changed. Raises StoreUnavailable."""
        rows = await self._store.projects.with_failing_notifications()
        self._written = {row.uid: self._written[row.uid] for row in rows if row.uid in self._written}
        for row in rows:
            text = ",".join(sorted(row.failing_notifications or ()))
            state = f"{now.timestamp() // REWRITE_SECONDS} {text}"
            if self._written.get(row.uid) == state:
                continue
            annotations = {ANNOTATION_FAILING_NOTIFICATIONS: text or None}
            try:
                await self._kube.at(row.object_namespace).patch(
                    PROJECT, row.name, {"metadata": {"uid": row.uid, "annotations": annotations}}
                )
            except (errors.KubeNotFound, errors.KubeConflict):
                # Deleted or recreated; the row follows.
                continue
            except errors.KubeError as error:
                log.warning("failing notifications not recorded", project=row.name, error=str(error))
                continue
            self._written[row.uid] = state
