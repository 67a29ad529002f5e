"""Plan of a key without one: the best plan of its projects. Called by `api.routing.middleware`."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable

from api.auth.principal import Caller
from crds.limits import Plans
from crds.objects import DEFAULT_PLAN

CACHE_SECONDS = 10.0
MAX_CACHED_PLANS = 10_000
PlansOf = Callable[[frozenset[str] | None], Awaitable[frozenset[str]]]


class BestPlan:
    """Looks up the plans of the projects of a key, at most every ten seconds per key."""

    def __init__(self, plans_of: PlansOf, plans: Plans) -> None:
        self._plans_of = plans_of
        self._plans = plans
        self._cache: OrderedDict[str, tuple[float, str]] = OrderedDict()

    async def of(self, caller: Caller, now: float) -> str:
        """Return the plan with the most requests per minute; `now` is monotonic. Raises StoreUnavailable."""
        return await self._best(caller.key_id, caller.projects, now)

    async def of_project(self, project: str, now: float) -> str:
        """Return the plan of a project; free if it does not exist. Raises StoreUnavailable."""
        return await self._best(f"project {project}", frozenset({project}), now)

    async def _best(self, key: str, projects: frozenset[str] | None, now: float) -> str:
        cached = self._cache.get(key)
        if cached is not None and now - cached[0] < CACHE_SECONDS:
            return cached[1]
        plans = await self._plans_of(projects) | {DEFAULT_PLAN}
        best = max(sorted(plans), key=lambda plan: self._plans.of(plan).requests_per_minute)
        self._cache[key] = (now, best)
        self._cache.move_to_end(key)
        if len(self._cache) > MAX_CACHED_PLANS:
            self._cache.popitem(last=False)
        return best
