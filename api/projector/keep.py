"""One round of all that keeps the store small: sealing logs, ending records, deleting what is left of them.

Called by `api.background`, one after another, so that none of them meets another one at the same run.
"""

from datetime import datetime, timedelta

from api.projector.clear import clear_round, upload_round
from api.projector.retain import Retainer
from api.projector.seal import seal_round
from api.store.store import Store


async def keep_round(store: Store, retainer: Retainer, now: datetime, seal_after: float) -> int:
    """A bounded part of the work; gives how much there was."""
    done = await seal_round(store, now - timedelta(seconds=seal_after))
    done += await retainer.round(now)
    done += await clear_round(store)
    return done + await upload_round(store, now)
