"""Webhook secrets, read from the cluster by name and cached. Called by `api.webhooks.routes`."""

import base64
import binascii
from collections import OrderedDict
from collections.abc import Callable

from crds.kinds import SECRET
from crds.objects import Project
from crds.secrets.use import SecretUse, credential_problem, webhook_reference
from kube.client import KubeClient

CACHE_SECONDS = 10.0
MAX_CACHED_SECRETS = 1000
SECRET_KEY = "token"


class WebhookSecrets:
    """Cached webhook secrets; `clock` returns monotonic seconds. A change takes effect after ten seconds."""

    def __init__(self, kube: KubeClient, clock: Callable[[], float], use: SecretUse) -> None:
        self._kube = kube
        self._clock = clock
        self._use = use
        self._cache: OrderedDict[tuple[str, str, str], tuple[float, str]] = OrderedDict()

    async def of(self, project: Project) -> str:
        """Return the webhook secret of a Project; empty if it may use none. Raises `kube.errors`."""
        reference = webhook_reference(project)
        if reference is None:
            return ""
        key = (project.namespace, project.name, reference.name)
        cached = self._cache.get(key)
        if cached is not None and self._clock() - cached[0] < CACHE_SECONDS:
            return cached[1]
        secret = await self._kube.at(project.namespace or None).get(SECRET, reference.name)
        text = "" if credential_problem(secret, reference, project, self._use) else _token(secret)
        self._cache[key] = (self._clock(), text)
        self._cache.move_to_end(key)
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
