"""Dependencies of the routes, built once by `api.app`."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web

from api import tenant_limits
from api.auth.api_keys import Keyring
from api.auth.providers import TokenProviders
from api.auth.revocation import RevocationWatcher
from api.build_context.upload import ContextFetcher
from api.config import ApiConfig
from api.http.caller_shares import ByteBudget, CallerSlots
from api.metrics import ApiMetrics
from api.ratelimit.best_plan import BestPlan
from api.ratelimit.limiter import RateLimiter
from api.store.store import Store
from api.streaming.fanout import RunFeeds
from api.streaming.registry import StreamRegistry
from crds.installation_limits import InstallationLimits
from kube.client import KubeClient


@dataclass(frozen=True)
class ApiServices:
    """Dependencies of the routes; `now` is the clock."""

    config: ApiConfig
    store: Store
    kube: KubeClient
    keyring: Keyring
    tokens: TokenProviders
    revocation: RevocationWatcher
    limiter: RateLimiter
    metrics: ApiMetrics
    streams: StreamRegistry
    feeds: RunFeeds
    best_plan: BestPlan
    context_fetcher: ContextFetcher
    downloads: CallerSlots
    bodies: ByteBudget
    caught_up: Callable[[], bool]
    """Whether the initial list of the cluster has completed since the start."""
    now: Callable[[], datetime]

    async def limits_of(self, project: str | None) -> InstallationLimits:
        """Return the limits of a project, by the plan that it had at most 30 s ago; None: no project."""
        return await tenant_limits.limits_of(self.store, self.config.plans, self.config.limits, project)


SERVICES = web.AppKey("services", ApiServices)
