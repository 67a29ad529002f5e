"""Record of the use of budgets on their Projects, where the controller reads it. Called by `loops`.

Written at each whole percent of the budget, when a month begins and when the budget changes, and again every
ten minutes, since `kubectl replace` removes the annotation; a patch that changes nothing stores nothing.
"""

from datetime import datetime

import structlog

from api.budgets import month_uses
from api.prices import Prices
from api.store.index.projects import ProjectRow
from api.store.store import Store
from crds.kinds import PROJECT
from crds.names import ANNOTATION_MONTH_USE
from crds.runs.budget import MonthUse, month_limits, used_share
from kube import errors
from kube.client import KubeClient

log = structlog.get_logger()

REWRITE_SECONDS = 600
"""Until a record is written again, which a client may have removed."""


class BudgetRecorder:
    """Writes the annotation of each Project with a budget, and remembers what it wrote."""

    def __init__(self, store: Store, kube: KubeClient, prices: Prices | None) -> None:
        self._store = store
        self._kube = kube
        self._prices = prices
        self._written: dict[str, str] = {}

    async def record_all(self, now: datetime) -> None:
        """Write what has changed. Raises StoreUnavailable."""
        rows = [row for row in await self._store.projects.with_budget() if month_limits(row.as_object())]
        self._written = {row.uid: self._written[row.uid] for row in rows if row.uid in self._written}
        uses = await month_uses(self._store, self._prices, [row.uid for row in rows], now) if rows else {}
        for row in rows:
            use = uses[row.uid]
            state = _state(row, use, now)
            if self._written.get(row.uid) == state:
                continue
            annotations = {ANNOTATION_MONTH_USE: use.to_json()}
            try:
                await self._kube.at(row.object_namespace).patch(
                    PROJECT, row.name, {"metadata": {"uid": row.uid, "annotations": annotations}}
                )
            except (errors.KubeNotFound, errors.KubeConflict):
                # Deleted or recreated; the row follows.
                continue
            except errors.KubeError as error:
                log.warning("use of a budget not recorded", project=row.name, error=str(error))
                continue
            self._written[row.uid] = state


def _state(row: ProjectRow, use: MonthUse, now: datetime) -> str:
    """Return what the record depends on."""
    limits = month_limits(row.as_object())
    interval = now.timestamp() // REWRITE_SECONDS
    return f"{interval} {use.month} {int(100 * used_share(limits, use))} {sorted(limits.items())}"
