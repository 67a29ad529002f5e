"""The plan of a key that names none: the best plan of its projects. Called by `api.routing.middleware`."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable

from api.auth.principal import Caller
from crds.limits import Plans

HOLDS_SECONDS = 10.0
REMEMBERED = 10_000
PlansOf = Callable[[frozenset[str] | None], Awaitable[frozenset[str]]]


class BestPlan:
    """Looks the plans of a key's projects up, at most every ten seconds a key."""

    def __init__(self, plans_of: PlansOf, plans: Plans) -> None:
        self._plans_of = plans_of
        self._plans = plans
        self._known: OrderedDict[str, tuple[float, str]] = OrderedDict()

    async def of(self, caller: Caller, now: float) -> str:
        """The plan with the most requests a minute; `now` is a monotonic clock's. Raises StoreUnavailable."""
        known = self._known.get(caller.key_id)
        if known is not None and now - known[0] < HOLDS_SECONDS:
            return known[1]
        found = await self._plans_of(caller.projects) | {"free"}
        best = max(sorted(found), key=lambda plan: self._plans.of(plan).requests_per_minute)
        self._known[caller.key_id] = (now, best)
        self._known.move_to_end(caller.key_id)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return best
