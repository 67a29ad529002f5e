"""What every route works with, assembled once by `api.app`."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web

from api.auth.api_keys import Keyring
from api.auth.providers import Tokens
from api.auth.revocation import Holders
from api.build_context.upload import Contexts
from api.config import Config
from api.metrics import Metrics
from api.ratelimit.limiter import RateLimiter
from api.ratelimit.plan import BestPlan
from api.store.store import Store
from api.streaming.fanout import Feeds
from api.streaming.registry import Streams
from kube.client import Kube


@dataclass(frozen=True)
class Services:
    """The parts of the facade; `now` is the clock."""

    config: Config
    store: Store
    kube: Kube
    keyring: Keyring
    tokens: Tokens
    holders: Holders
    limiter: RateLimiter
    metrics: Metrics
    streams: Streams
    feeds: Feeds
    best_plan: BestPlan
    contexts: Contexts
    caught_up: Callable[[], bool]
    """Whether all that lives in the cluster has been seen once since the start."""
    now: Callable[[], datetime]


SERVICES = web.AppKey("services", Services)
