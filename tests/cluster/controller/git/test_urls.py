"""Hostile repository URLs: the apiserver refuses each, or the Project reports the reason."""

import asyncio
from typing import Any

from crds import kinds
from kube.errors import Invalid
from tests.cluster.controller.conftest import ControllerTestbed, controller, settings
from tests.testbed.hostile_urls import HOSTILE
from tests.testbed.listeners import listening

INSIDE = ("127.0.0.1", "0x7f.1", "2130706433", "localhost", "0", "[::1]", "[::ffff:127.0.0.1]")


def ready(project: dict[str, Any]) -> dict[str, Any] | None:
    """Return the condition Ready once it is not Unknown."""
    conditions = (project.get("status") or {}).get("conditions", ())
    return next(
        (item for item in conditions if item["type"] == "Ready" and item["status"] != "Unknown"), None
    )


async def test_hostile_url_is_refused_or_reported(kube):
    """Slow: a Project and a poll for each of the URLs."""
    config = settings(kube.namespace, net_allow=())
    with listening("::") as listener:
        urls = [
            *sorted(set(HOSTILE)),
            *(f"{s}://{h}:{listener.port}/x" for h in INSIDE for s in ("http", "https", "ssh")),
        ]
        async with controller(kube, config) as process:
            testbed, names = ControllerTestbed(kube, config, process), list[str]()
            for number, url in enumerate(urls):
                try:
                    await testbed.project(f"p-{number}", source={"git": {"url": url, "interval": "1h"}})
                    names.append(f"p-{number}")
                except Invalid as error:
                    assert "url" in error.message, url
            assert len(names) >= 3 * len(INSIDE)
            projects = await asyncio.gather(
                *(testbed.until(kinds.PROJECT, name, ready, 900) for name in names)
            )
    for project in projects:
        condition, url = ready(project) or {}, project["spec"]["source"]["git"]["url"]
        assert (condition["status"], condition["message"].isprintable()) == ("False", True), url
        assert condition["reason"] in ("InvalidUrl", "UnsupportedScheme", "AddressRefused", "GitNotFound"), (
            url,
            condition,
        )
    assert listener.visits == 0
