"""The pods' calls, assembled. Called by `api.app`."""

from aiohttp import web

from api.config import Config
from api.store.store import Store
from crds.kube import Kube


def add(app: web.Application, config: Config, store: Store, kube: Kube) -> None:
    """Adds the routes under `/internal/v1`. They answer `{"error": …}` and need no bearer key but a token."""
    raise NotImplementedError
