"""Webhook secrets, read from the cluster by name and cached. Called by `api.webhooks.routes`."""

import base64
import binascii
from collections import OrderedDict
from collections.abc import Callable

from crds.kinds import SECRET
from kube.client import KubeClient

CACHE_SECONDS = 10.0
MAX_CACHED_SECRETS = 1000
SECRET_KEY = "token"


class WebhookSecrets:
    """Cached webhook secrets; `clock` returns monotonic seconds. A change takes effect after ten seconds."""

    def __init__(self, kube: KubeClient, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._clock = clock
        self._cache: OrderedDict[str, tuple[float, str]] = OrderedDict()

    async def of(self, name: str) -> str:
        """Return the webhook secret of the Secret `name`; empty if there is none. Raises `kube.errors`."""
        cached = self._cache.get(name)
        if cached is not None and self._clock() - cached[0] < CACHE_SECONDS:
            return cached[1]
        text = _token(await self._kube.get(SECRET, name))
        self._cache[name] = (self._clock(), text)
        self._cache.move_to_end(name)
        while len(self._cache) > MAX_CACHED_SECRETS:
            self._cache.popitem(last=False)
        return text


def _token(secret: dict[str, object] | None) -> str:
    data = (secret or {}).get("data")
    encoded = data.get(SECRET_KEY) if isinstance(data, dict) else None
    try:
        return base64.b64decode(encoded or "").decode().strip()
    except (binascii.Error, UnicodeDecodeError):
        return ""
