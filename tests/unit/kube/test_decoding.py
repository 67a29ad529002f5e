"""Decoding of the apiserver's JSON at any nesting depth."""

import sys

import pytest
from aiohttp import web

from crds import kinds
from kube import errors
from kube.decoding import decode
from tests.testbed.apiserver import serving


@pytest.mark.parametrize("levels", [1, 900, 1500, 10_000, 20_000])
def test_deep_nesting(levels: int) -> None:
    before = sys.getrecursionlimit()
    value = decode(b'{"a":' * levels + b"1" + b"}" * levels)
    for _ in range(levels):
        value = value["a"]
    assert (value, sys.getrecursionlimit()) == (1, before)


def test_invalid_json() -> None:
    with pytest.raises(ValueError):
        decode(b"[" * 20_000)


async def test_an_answer_that_is_no_json_is_an_unreachable_apiserver() -> None:
    """A proxy before the apiserver answers so; any other error would end the tasks that call."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html>maintenance</html>")

    async with serving([web.get("/{path:.*}", page)]) as kube:
        with pytest.raises(errors.KubeUnavailable, match="not JSON"):
            await kube.list(kinds.POD)
