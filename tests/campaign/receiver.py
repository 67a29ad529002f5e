"""Receiver of a project's notifications, which verifies each message and refuses some.

Called by `tests.campaign.faults`; the checker compares the messages with the ends of the runs.
"""

import asyncio
import base64
import contextlib
import secrets
from collections.abc import AsyncIterator, Collection
from typing import Any

from aiohttp import web
from standardwebhooks import Webhook

from crds.kinds import SECRET
from crds.names import LABEL_PROJECT
from tests.campaign.checks.observed import ReceivedMessage
from tests.campaign.testbed import CampaignTestbed

EVENTS = ("run.succeeded", "run.failed", "run.canceled", "run.waiting")
REFUSED_SHARE = 5
"""Every fifth new message gets the status 503 once, and comes again."""
_NAME = "campaign-receiver"


class NotificationReceiver:
    """Messages in the order of their arrival."""

    def __init__(self, address: str) -> None:
        self.messages: list[ReceivedMessage] = []
        self.key = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
        self.url = ""
        self._address, self._known = address, set[str]()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator["NotificationReceiver"]:
        """Listen while the block is open."""
        application = web.Application()
        application.router.add_post("/", self._receive)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, self._address, 0)
        await site.start()
        self.url = f"http://{self._address}:{runner.addresses[0][1]}/"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def create_secret(self, testbed: CampaignTestbed) -> dict[str, Any]:
        """Create the Secret with the shared key; return the entry of a Project's `notifications`."""
        secret = f"{testbed.project}-receiver"
        metadata = {"name": secret, "labels": {LABEL_PROJECT: testbed.project}}
        await testbed.kube.create(SECRET, {"metadata": metadata, "stringData": {"secret": self.key}})
        return {"name": _NAME, "url": self.url, "secret_ref": {"name": secret}, "events": list(EVENTS)}

    async def wait_ended(self, ids: Collection[str], seconds: float) -> None:
        """Wait until there is a message about the end of each run, for at most `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while set(ids) - {one.run for one in self.messages if one.type != "run.waiting"}:
                    await asyncio.sleep(0.2)

    async def _receive(self, request: web.Request) -> web.Response:
        content = await request.read()
        event = Webhook(self.key).verify(content, dict(request.headers))
        message_id = request.headers["webhook-id"]
        is_new = message_id not in self._known
        self._known.add(message_id)
        if is_new and len(self._known) % REFUSED_SHARE == 0:
            return web.Response(status=503)
        self.messages.append(ReceivedMessage(message_id, event["type"], event["data"]["id"]))
        return web.Response(status=204)
