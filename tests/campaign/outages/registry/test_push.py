"""The registry is away, full, closed, slow or torn while images are pushed to it."""

import asyncio
import json
import os

import pytest

from crds.kinds import SECRET
from dev.registry import access
from dev.settings import from_environment
from kube.client import KubeClient
from tests.campaign import installed_service
from tests.campaign.outages.network.link import Link, open_link
from tests.campaign.outages.network.rule import (
    UP,
    CutAfterBytes,
    FixedResponse,
    HungRequests,
    SlowLink,
    Which,
)
from tests.campaign.outages.outage import Outage, outage
from tests.campaign.outages.registry.images import active, deploy, ended, registry_address, whole
from tests.campaign.reports.report import require_good
from tests.campaign.testbed import CampaignTestbed, open_testbed

CONCURRENCY = 6
PUSHED = "RegistryPush"
PUSH = "push-through-the-link"
PROJECTS = ("away", "full", "closed", "flaky")


def of(project: str, *methods: str) -> Which:
    """The requests to the repository of a project, of these methods or all."""
    return lambda line: f"/{project}/" in line.path and (not methods or line.method in methods)


async def failing(found: Outage, kind: str, project: str, rule_words: tuple[str, ...], before: str) -> None:
    """A deployment that must fail and say why, while the previous one stays active."""
    _, deployment = await deploy(found.testbed, project, f"{project} {kind}")
    done = await ended(found.testbed, deployment)
    error = done.get("error") or {}
    if done["status"] != "failed" or error.get("reason") != PUSHED:
        found.add_violation("answers", f"{kind}: {done['status']}, {error}")
    missing = [word for word in rule_words if word not in json.dumps(error)]
    if missing or not error.get("hint"):
        found.add_violation("answers", f"{kind}: {missing} is not named in {error}")
    if await active(found.testbed, project) != before:
        found.add_violation("active", f"{kind}: the previous deployment did not stay active")


async def built(found: Outage, registry: str, kind: str, project: str, mark: str) -> str:
    """A deployment that must become active, whole; its id."""
    _, deployment = await deploy(found.testbed, project, mark)
    done = await ended(found.testbed, deployment)
    if done["status"] != "active":
        found.add_violation("answers", f"{kind}: {done['status']}, {done.get('error')}")
        return deployment
    for text in await whole(found.testbed, registry, deployment):
        found.add_violation("artifacts", f"{kind}: {text}")
    return deployment


@pytest.mark.campaign
async def test_every_registry_fault(place):
    """Each project has its own faults, at the same time; runs continue meanwhile."""
    name = "test_every_registry_fault"
    host, port = registry_address()
    async with open_link(host, port, host) as link:
        settings = {
            "CREWYARD_REGISTRY": f"{host}:{link.port}",
            "CREWYARD_BASE_IMAGES": await base_images(f"{host}:{link.port}"),
            "CREWYARD_REGISTRY_INSECURE": "true",
            "CREWYARD_REGISTRY_SECRET": PUSH,
            "CREWYARD_MAX_BUILDS": "3",
        }
        async with (
            open_testbed(place, concurrency=CONCURRENCY, settings=settings) as testbed,
            outage(name, testbed, CONCURRENCY) as found,
        ):
            registry = f"http://{host}:{port}"
            await credential(testbed, f"{host}:{link.port}")
            await found.store_artifact(1000)
            for project in PROJECTS:
                await testbed.ask("POST", "/v1/projects", {"name": project})
            first = dict(
                zip(
                    PROJECTS,
                    await asyncio.gather(
                        *(built(found, registry, "no fault", one, f"{one} 1") for one in PROJECTS)
                    ),
                    strict=True,
                )
            )
            working = asyncio.create_task(work(found))
            closed = 'Www-Authenticate: Basic realm="registry"\r\n'
            await asyncio.gather(
                found.inject(
                    "registry away",
                    link.fault(HungRequests(of("away"))),
                    0,
                    lambda: failing(found, "away", "away", ("registry",), first["away"]),
                ),
                found.inject(
                    "registry full",
                    link.fault(
                        FixedResponse(507, "no space left on device", "", of("full", "POST", "PUT", "PATCH"))
                    ),
                    0,
                    lambda: failing(found, "full", "full", ("507",), first["full"]),
                ),
                found.inject(
                    "registry closed",
                    link.fault(FixedResponse(401, "", closed, of("closed"))),
                    0,
                    lambda: failing(found, "closed", "closed", (PUSH,), first["closed"]),
                ),
                passing(found, registry, link),
            )
            # All is as before: what failed can be deployed again.
            for project in PROJECTS[:3]:
                await built(found, registry, "afterwards", project, f"{project} 2")
            await working
    require_good(found.campaign.report)


async def base_images(registry: str) -> str:
    """The installation's base images, named at another address of the same registry."""
    kube = await KubeClient.connect("default", "campaign")
    try:
        found = json.loads((await installed_service.installed(kube))["CREWYARD_BASE_IMAGES"])
    finally:
        await kube.close()
    return json.dumps({version: f"{registry}/{name.partition('/')[2]}" for version, name in found.items()})


async def credential(testbed: CampaignTestbed, registry: str) -> None:
    """The Secret with which builds push to the registry by that name: repositories of the test bed alone."""
    config = access.docker_config(from_environment(os.environ), testbed.namespace, registry)
    kind = "kubernetes.io/dockerconfigjson"
    await testbed.kube.create(
        SECRET, {"metadata": {"name": PUSH}, "type": kind, "stringData": {".dockerconfigjson": config}}
    )


async def passing(found: Outage, registry: str, link: Link) -> None:
    """Faults that a build survives, one after the other."""
    rules = {
        "registry answers 500": FixedResponse(500, "oops", "", of("flaky"), most=3),
        "registry answers 429": FixedResponse(429, "slow down", "", of("flaky"), most=3),
        "registry cut while it takes": CutAfterBytes(UP, 5_000, of("flaky", "PUT"), most=2),
        "registry slow": SlowLink(0.2, 200_000, of("flaky")),
    }
    for kind, rule in rules.items():

        async def during(kind: str = kind) -> None:
            await built(found, registry, kind, "flaky", kind)

        await found.inject(kind, link.fault(rule), 0, during)


async def work(found: Outage) -> None:
    """Return the runs of the project that has its image."""
    for _ in range(10):
        await found.campaign.work.post({"events": 5, "pause": 0.2, "artifact": 1000})
        await asyncio.sleep(4)
