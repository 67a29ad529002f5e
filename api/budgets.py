"""Use of a project's budget in this month, from the index.

Called by the routes of runs and usage, and by `api.maintenance.record_budgets`.
"""

from collections.abc import Collection
from datetime import UTC, datetime

from api.prices import Prices
from api.store.index.usage import Measures
from api.store.store import Store
from crds.runs.budget import MonthUse, month_of


async def month_use(store: Store, prices: Prices | None, project_uid: str, now: datetime) -> MonthUse:
    """Return what a project has used in the month of `now`. Raises StoreUnavailable."""
    return (await month_uses(store, prices, [project_uid], now))[project_uid]


async def month_uses(
    store: Store, prices: Prices | None, project_uids: Collection[str], now: datetime
) -> dict[str, MonthUse]:
    """Return what each of these projects has used, by its uid, by one query. Raises StoreUnavailable."""
    today = now.astimezone(UTC).date()
    totals = await store.usage.totals(project_uids, today.replace(day=1), today)
    return {uid: _month_use(totals.get(uid, Measures()), prices, now) for uid in project_uids}


def _month_use(used: Measures, prices: Prices | None, now: datetime) -> MonthUse:
    tokens = used.prompt_tokens + used.completion_tokens
    return MonthUse(month_of(now), tokens, prices.cost(used) if prices else None)
