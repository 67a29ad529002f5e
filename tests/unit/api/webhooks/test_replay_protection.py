"""Processed deliveries: a redelivery is known by its id and, if the body is signed, by its body."""

from datetime import timedelta

import pytest

from api.store.index.idempotency import KEY_RETENTION
from api.webhooks.body import DeliveryBody
from api.webhooks.replay_protection import ProcessedDeliveries, delivery_keys
from api.webhooks.signature import DeliveryProof
from tests.unit.api.conftest import NOW

SIGNED, TOKEN = DeliveryProof(digests=("0" * 64,)), DeliveryProof(tokens=("secret",))


BODY = DeliveryBody(b"{}", "a signature", "a hash")


@pytest.mark.parametrize(
    ("identifiers", "proof", "keys"),
    [
        (["a", "b"], SIGNED, ["id:a", "id:b", "body:a hash"]),
        ([], SIGNED, ["body:a hash"]),
        (["a"], TOKEN, ["id:a body:a hash"]),
        ([], TOKEN, ["body:a hash"]),
    ],
)
def test_keys_of_a_delivery(identifiers, proof, keys):
    assert delivery_keys(identifiers, proof, BODY) == keys


async def test_stored_delivery_is_known_for_a_day_to_its_project(testbed):
    deliveries = ProcessedDeliveries(testbed.store.idempotency, "uid-1")
    assert not await deliveries.contain_any(["id:a", "body:b"], NOW)
    await deliveries.add(["id:a", "body:b"], NOW)
    # A delivery that is stored already may be stored again.
    await deliveries.add(["id:a"], NOW)
    for keys in (["id:a"], ["body:b"], ["id:new", "body:b"], ["id:a", "body:new"]):
        assert await deliveries.contain_any(keys, NOW), keys
    assert not await deliveries.contain_any(["id:b", "body:a"], NOW)
    assert not await deliveries.contain_any([], NOW)
    assert not await ProcessedDeliveries(testbed.store.idempotency, "uid-2").contain_any(["id:a"], NOW)
    late = NOW + KEY_RETENTION
    assert await deliveries.contain_any(["id:a"], late - timedelta(seconds=1))
    assert not await deliveries.contain_any(["id:a"], late)
