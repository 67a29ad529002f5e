"""A hundred addresses that nobody means well with: each is refused, or its Project says what is wrong."""

import asyncio
from typing import Any

from crds import kinds
from kube.errors import Invalid
from tests.cluster.controller.conftest import ControllerTestbed, controller, settings
from tests.testbed.hostile_urls import HOSTILE
from tests.testbed.listeners import listening

INSIDE = ("127.0.0.1", "0x7f.1", "2130706433", "localhost", "0", "[::1]", "[::ffff:127.0.0.1]")


def ready(found: dict[str, Any]) -> dict[str, Any] | None:
    """The condition Ready, once it is decided."""
    conditions = (found.get("status") or {}).get("conditions", ())
    return next((one for one in conditions if one["type"] == "Ready" and one["status"] != "Unknown"), None)


async def test_hostile_url_is_refused_or_reported(kube):
    config = settings(kube.namespace, net_allow=())
    with listening("::") as listener:
        urls = [
            *sorted(set(HOSTILE)),
            *(f"{s}://{h}:{listener.port}/x" for h in INSIDE for s in ("http", "https", "ssh")),
        ]
        async with controller(kube, config) as process:
            testbed, made = ControllerTestbed(kube, config, process), list[str]()
            for number, url in enumerate(urls):
                try:
                    await testbed.project(f"p-{number}", source={"git": {"url": url, "interval": "1h"}})
                    made.append(f"p-{number}")
                except Invalid as error:
                    assert "url" in error.message, url
            assert len(made) >= 3 * len(INSIDE)
            found = await asyncio.gather(*(testbed.until(kinds.PROJECT, name, ready, 300) for name in made))
    for one in found:
        told, url = ready(one) or {}, one["spec"]["source"]["git"]["url"]
        assert (told["status"], told["message"].isprintable()) == ("False", True), url
        assert told["reason"] in ("InvalidUrl", "UnsupportedScheme", "AddressRefused", "GitNotFound"), (
            url,
            told,
        )
    assert listener.visits == 0
