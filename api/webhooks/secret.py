"""The secrets of webhooks, read from the cluster by name, kept for seconds. Called by `api.webhooks.routes`."""

import base64
import binascii
from collections import OrderedDict
from collections.abc import Callable

from crds.kinds import SECRET
from kube.client import Kube

KEPT_SECONDS = 10.0
MOST = 1000
KEY = "token"


class Secrets:
    """What the Secrets say; `clock` gives monotonic seconds. A change of a Secret holds ten of them later."""

    def __init__(self, kube: Kube, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, str]] = OrderedDict()

    async def of(self, name: str) -> str:
        """The webhook's secret in the Secret `name`; empty where there is none. Raises `kube.errors`."""
        found = self._known.get(name)
        if found is not None and self._clock() - found[0] < KEPT_SECONDS:
            return found[1]
        text = _token(await self._kube.get(SECRET, name))
        self._known[name] = (self._clock(), text)
        self._known.move_to_end(name)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return text


def _token(secret: dict[str, object] | None) -> str:
    data = (secret or {}).get("data")
    encoded = data.get(KEY) if isinstance(data, dict) else None
    try:
        return base64.b64decode(encoded or "").decode().strip()
    except (binascii.Error, UnicodeDecodeError):
        return ""
