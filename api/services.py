"""What every route works with, assembled once by `api.app`."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web

from api.config import Config
from api.context.arrival import Contexts
from api.feeds import Feeds
from api.identity.holders import Holders
from api.identity.tokens import Tokens
from api.keyring import Keyring
from api.limits import RateLimiter
from api.metrics import Metrics
from api.plans import BestPlan
from api.store.store import Store
from api.streams import Streams
from crds.kube import Kube


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
