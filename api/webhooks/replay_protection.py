"""Which deliveries had their effect already, for a day, so that a repeated one has none.

A host's id of a delivery is not signed: where the body is, the body is remembered
as well. Only what had an effect is remembered, so that nobody without the secret
fills the index. Called by `api.webhooks.routes`.
"""

from collections.abc import Iterable
from datetime import datetime

from api.store.index.idempotency import Idempotency, IdempotencyKeys
from api.webhooks.body import Body
from api.webhooks.signature import Proof


def names(identifiers: Iterable[str], proof: Proof, body: Body) -> list[str]:
    """What a delivery is remembered by. Pure."""
    found = [f"id:{identifier}" for identifier in identifiers]
    return [*found, f"body:{body.sha256}"] if proof.signed or not found else found


class Memory:
    """The deliveries to the Project of one uid."""

    def __init__(self, keys: IdempotencyKeys, project_uid: str) -> None:
        self._keys = keys
        self._owner = f"hook:{project_uid}"

    async def knows(self, delivered: Iterable[str], now: datetime) -> bool:
        """Whether a delivery of one of these names had its effect."""
        for name in delivered:
            if await self._keys.find(Idempotency(self._owner, name, ""), now) is not None:
                return True
        return False

    async def keep(self, delivered: Iterable[str], now: datetime) -> None:
        """Remembers a delivery after its effect: one that failed may be repeated."""
        for name in delivered:
            await self._keys.put(Idempotency(self._owner, name, ""), "delivery", now)
