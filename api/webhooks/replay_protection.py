"""Replay protection: stores processed deliveries for a day, so a redelivery has no effect.

The delivery id of a host is not signed; if the body is, the hash of the body is stored too. GitLab signs
nothing, and gives all deliveries of a webhook that follow from one request the same id, such as those of the
merge requests that one push merges: there the id counts together with the body.
Only deliveries with an effect are stored, so clients without the secret cannot fill the index.
Called by `api.webhooks.routes`.
"""

from collections.abc import Iterable
from datetime import datetime

from api.store.index.idempotency import Idempotency, IdempotencyKeys
from api.webhooks.body import DeliveryBody
from api.webhooks.signature import DeliveryProof


def delivery_keys(identifiers: Iterable[str], proof: DeliveryProof, body: DeliveryBody) -> list[str]:
    """Return the keys that identify a delivery. Pure."""
    keys, of_body = [f"id:{identifier}" for identifier in identifiers], f"body:{body.sha256}"
    return [*keys, of_body] if proof.signed or not keys else [f"{key} {of_body}" for key in keys]


class ProcessedDeliveries:
    """Processed deliveries of the Project with one uid."""

    def __init__(self, keys: IdempotencyKeys, project_uid: str) -> None:
        self._idempotency_keys = keys
        self._owner = f"hook:{project_uid}"

    async def contain_any(self, keys: Iterable[str], now: datetime) -> bool:
        """Return whether one of these keys is stored."""
        for key in keys:
            if await self._idempotency_keys.find(Idempotency(self._owner, key, ""), now) is not None:
                return True
        return False

    async def add(self, keys: Iterable[str], now: datetime) -> None:
        """Store a delivery after its effect; a failed delivery may be sent again."""
        for key in keys:
            await self._idempotency_keys.put(Idempotency(self._owner, key, ""), "delivery", now)
