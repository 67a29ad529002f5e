"""A full list is applied whole, whatever one of its objects is like."""

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


async def applied(error: Exception) -> list[str]:
    """The names that were applied where the second of three objects raises `error`."""
    found: list[str] = []

    async def apply(one: dict[str, Any]) -> None:
        if one["metadata"]["name"] == "run-b":
            raise error
        found.append(one["metadata"]["name"])

    async def gone(name: str, uid: str) -> None:
        raise AssertionError(name)

    async def known() -> dict[str, tuple[str, int]]:
        return {}

    listing = Listing([item("run-a"), item("run-b"), item("run-c")], "9")
    await apply_list(Projection(RUN, apply, gone, known), listing)
    return found


@pytest.mark.parametrize(
    "error",
    [KeyError("x"), OverflowError("x"), RecursionError("x"), StatementError("x", None, None, Exception())],
)
async def test_an_object_that_cannot_be_kept_keeps_no_other_from_it(error: Exception) -> None:
    assert await applied(error) == ["run-a", "run-c"]


async def test_a_store_that_cannot_answer_is_asked_again() -> None:
    with pytest.raises(StoreUnavailable):
        await applied(StoreUnavailable("the disk is away"))
