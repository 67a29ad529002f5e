"""A full list is applied even if one of its objects is malformed."""

from typing import Any

import pytest
from sqlalchemy.exc import StatementError

from api.projection.list_watch import Projection, apply_list
from api.store.errors import StoreUnavailable
from crds.kinds import RUN
from kube.client import Listing


def item(name: str) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "5"}
    return {"metadata": {**metadata, "creationTimestamp": "2026-11-21T10:00:00Z"}}


async def apply_three_objects(error: Exception) -> list[str]:
    """Apply three objects, the second of which raises `error`; return the applied names."""
    applied: list[str] = []

    async def apply(manifest: dict[str, Any]) -> None:
        if manifest["metadata"]["name"] == "run-b":
            raise error
        applied.append(manifest["metadata"]["name"])

    async def delete(name: str, uid: str) -> None:
        raise AssertionError(name)

    async def indexed() -> dict[str, tuple[str, int]]:
        return {}

    listing = Listing([item("run-a"), item("run-b"), item("run-c")], "9")
    await apply_list(Projection(RUN, apply, delete, indexed), listing)
    return applied


@pytest.mark.parametrize(
    "error",
    [KeyError("x"), OverflowError("x"), RecursionError("x"), StatementError("x", None, None, Exception())],
)
async def test_malformed_object_does_not_block_others(error: Exception) -> None:
    assert await apply_three_objects(error) == ["run-a", "run-c"]


async def test_store_error_is_raised() -> None:
    with pytest.raises(StoreUnavailable):
        await apply_three_objects(StoreUnavailable("the disk is away"))
