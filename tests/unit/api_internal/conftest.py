"""The pods' routes over a real store, with an apiserver that cannot be reached."""

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from kubernetes.aio import client

from api.config import Config
from api.internal import routes
from api.store.store import Store
from crds import tokens
from crds.kube import Kube

KEY = "a key that is only used here"
Pods = TestClient[web.Request, web.Application]
Mint = Callable[..., dict[str, str]]


class _Server(TestServer):
    """As installed: a call goes on when its sender is gone."""

    async def _make_runner(self, **options: Any) -> web.BaseRunner:
        return await super()._make_runner(**{**options, "handler_cancellation": False})


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(tmp_path / "data", "crews")
    yield opened
    await opened.close()


@pytest.fixture
async def pods(store: Store, tmp_path: Path) -> AsyncIterator[Pods]:
    kube = Kube(client.ApiClient(client.Configuration(host="http://127.0.0.1:9")), "crews")
    config = Config("crews", "http://public", "http://internal", KEY, tmp_path)
    app = web.Application()
    routes.add(app, config, store, kube)
    async with TestClient(_Server(app)) as opened:
        yield opened
    await kube.close()


@pytest.fixture
def bearer() -> Mint:
    """Makes the header of a token."""

    def mint(name: str, **other: Any) -> dict[str, str]:
        values = {
            "key": KEY,
            "kind": "run",
            "namespace": "crews",
            "uid": "run-uid",
            "expires": int(time.time()) + 60,
            **other,
        }
        return {"Authorization": "Bearer " + tokens.mint(name=name, **values)}

    return mint
