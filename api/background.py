"""What the facade does without being asked: projecting objects into rows, completing what a crash left,
writing claims to their objects, following build logs, pruning. Started by `api.app` as a cleanup context.
"""

from collections.abc import AsyncIterator, Callable

from aiohttp import web

from api.config import Config
from api.store.store import Store
from crds.kube import Kube


def context(config: Config, store: Store, kube: Kube) -> Callable[[web.Application], AsyncIterator[None]]:
    """A cleanup context for `app.cleanup_ctx` that runs all of it until the application stops."""
    raise NotImplementedError
