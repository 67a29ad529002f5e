"""The receiver in docs/notifications.md posts a verified event to a chat and refuses others."""

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from api.notifications.message import body, headers
from tests.unit.api.notifications.test_attempt import row
from tests.unit.api.notifications.test_message import KEY

PAGE = Path(__file__).parents[4] / "docs" / "notifications.md"


@pytest.fixture
async def chat():
    """The incoming webhook of a chat, with what was posted."""
    posted = asyncio.Queue()

    async def take(request: web.Request) -> web.Response:
        await posted.put(await request.json())
        return web.Response()

    application = web.Application()
    application.router.add_post("/", take)
    async with TestServer(application) as server:
        yield server.make_url("/"), posted


async def test_the_example_posts_to_a_chat(chat, monkeypatch):
    url, posted = chat
    [source] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    example = {"__name__": "example"}
    exec(compile(source, str(PAGE), "exec"), example)
    monkeypatch.setenv("WEBHOOK_SECRET", KEY)
    monkeypatch.setenv("CHAT_URL", str(url))
    error = {"reason": "CrewFailed", "message": "No tides."}
    content = body(row(), {"id": "run_a", "project": "research", "error": error})
    signed = headers(KEY, row(), content, datetime.now(UTC))
    async with TestClient(TestServer(example["app"])) as client:
        async with client.post("/crewyard", data=content, headers=signed) as response:
            assert response.status == 204
        assert await posted.get() == {"text": "run.failed: run_a of research. No tides."}
        async with client.post("/crewyard", data=content + b" ", headers=signed) as response:
            assert response.status == 401
    assert posted.empty()
