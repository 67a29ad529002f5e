"""One round of all that keeps the store small: deleting what is left, ending records, sealing logs.

Called by `api.maintenance.loops`, one after another, so that none of them meets another one at the same run. What
frees room comes first, and where one part fails the others go on: a full disk must not keep itself full.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from api.maintenance.garbage import clear_round, upload_round
from api.maintenance.retention import Retainer
from api.maintenance.seal_logs import Sealer
from api.store.errors import StoreUnavailable
from api.store.store import Store


class Keeper:
    """Keeps one store; `record_ttl` and `seal_after` are the installation's, in seconds."""

    def __init__(self, store: Store, record_ttl: float, seal_after: float) -> None:
        self._store = store
        self._retainer = Retainer(store, record_ttl)
        self._sealer = Sealer(store)
        self._seal_after = timedelta(seconds=seal_after)

    async def round(self, now: datetime) -> int:
        """A bounded part of the work; gives how much was done. Raises StoreUnavailable."""
        done, trouble = 0, None
        parts: tuple[Callable[[], Awaitable[int]], ...] = (
            lambda: clear_round(self._store),
            lambda: upload_round(self._store, now),
            lambda: self._retainer.round(now),
            lambda: self._sealer.round(now, now - self._seal_after),
        )
        for part in parts:
            try:
                done += await part()
            except StoreUnavailable as error:
                trouble = trouble or error
        if trouble:
            raise trouble
        return done
