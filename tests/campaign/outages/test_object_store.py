"""The object store is away, slow, torn, full, closed or mad while crews store artifacts: nothing is lost."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.campaign.checks import observation
from tests.campaign.outages.caller import CUT
from tests.campaign.outages.network.link import Link, open_link
from tests.campaign.outages.network.rule import (
    DOWN,
    UP,
    CutAfterBytes,
    FixedResponse,
    GarbageBytes,
    SilentLink,
    SlowLink,
)
from tests.campaign.outages.outage import BACK_SECONDS, Outage, outage
from tests.campaign.outages.sources import UploadedSource, disagreement, source
from tests.campaign.outages.volume import full, volume
from tests.campaign.reports.report import require_good
from tests.campaign.testbed import open_testbed
from tests.unit.api.store import bucket as s3

CONCURRENCY = 6
SIZES = (300_000, 2_000_000, 10_000_000)
"""The last one goes in parts."""
SMALL = 300_000
BUILD_SECONDS = 900.0
"""For a build on a slow machine that has much else to do."""
AWAY = ("artifact", (503, CUT))
Fault = AbstractAsyncContextManager[Any]

ERROR = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>no</Message></Error>'


def faults(link: Link, bucket: Path) -> dict[str, tuple[Fault, Any]]:
    """Each fault with the response to an artifact request meanwhile, if it is certain."""
    return {
        "object store refuses": (link.refusing(), AWAY),
        "object store silent": (link.fault(SilentLink()), AWAY),
        "object store slow": (link.fault(SlowLink(0.1, 1_500_000)), None),
        "object store cut while it takes": (link.fault(CutAfterBytes(UP, 150_000)), None),
        "object store cut while it gives": (link.fault(CutAfterBytes(DOWN, 100_000)), AWAY),
        "object store answers 503": (link.fault(FixedResponse(503, ERROR.format(code="SlowDown"))), AWAY),
        "object store answers 500": (
            link.fault(FixedResponse(500, ERROR.format(code="InternalError"))),
            AWAY,
        ),
        "object store answers 403": (
            link.fault(FixedResponse(403, ERROR.format(code="SignatureDoesNotMatch"))),
            AWAY,
        ),
        "object store answers 507": (link.fault(FixedResponse(507, ERROR.format(code="StorageFull"))), AWAY),
        "object store answers garbage": (link.fault(GarbageBytes()), AWAY),
        "object store full": (full(bucket), None),
    }


async def struck(
    found: Outage, kind: str, fault: Fault, expected: Any, sizes: tuple[int, ...]
) -> UploadedSource:
    """One fault while crews write artifacts and a source is sent; gives the upload, whole in the end."""
    scripts = [{"events": 8, "pause": 0.25, "artifact": size} for size in sizes]
    runs = [await found.campaign.work.post(script) for script in scripts]
    sent = await UploadedSource.announced(found.testbed, source(kind))

    async def during() -> None:
        await asyncio.gather(found.crew_done(*runs), sent.send())

    await found.inject(kind, fault, 3, during, expected)
    await found.wait_ended(*runs)
    await sent.arrive(BACK_SECONDS)
    if sent.odd:
        found.add_violation("answers", f"{kind}: the upload was answered {sent.odd}")
    return sent


async def deployed(found: Outage, sent: UploadedSource) -> None:
    """What was uploaded through a fault is what is built, becomes active, and runs."""
    deployment = await sent.deploy()
    await found.testbed.wait_active(deployment.replace("_", "-", 1), BUILD_SECONDS)
    run = await found.campaign.work.post({"events": 2, "artifact": SMALL})
    await found.wait_ended(run)


async def agree(found: Outage, blobs: Path) -> None:
    """Files and rows are the same."""
    runs = await observation.runs(found.testbed)
    for text in disagreement(blobs, runs):
        found.add_violation("artifacts", text)
    found.campaign.notes.append(f"{sum(len(seen.artifacts) for seen in runs.values())} artifacts, all whole")


def settings(server: s3.S3Server, link: Link, bucket: Path) -> dict[str, str]:
    return {
        **server.environment,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{link.port}",
        "CREWYARD_BLOBS_URL": f"s3://{bucket.name}/kept",
    }


async def tried(
    name: str, place: Path, server: s3.S3Server, bucket: Path, only: tuple[str, ...] = (), built: bool = False
) -> None:
    """All faults, or those that are named; where it is to be `built`, the last upload is deployed, too."""
    async with (
        open_link("127.0.0.1", server.port) as link,
        open_testbed(place, concurrency=CONCURRENCY, settings=settings(server, link, bucket)) as testbed,
        outage(name, testbed, CONCURRENCY) as found,
    ):
        await found.store_artifact(SMALL)
        for kind, (fault, expected) in faults(link, bucket).items():
            if not only or kind in only:
                sent = await struck(found, kind, fault, expected, SIZES if not only else SIZES[:2])
        if built:
            await deployed(found, sent)
        await agree(found, bucket)
    require_good(found.campaign.report)


@pytest.fixture
def server():
    program = s3.program()
    if program is None:
        pytest.skip(s3.MISSING)
    found = s3.S3Server(program)
    yield found
    found.close()


async def test_object_store_flaps(place, server):
    """Slow: two faults, each with runs and a recovery."""
    only = ("object store refuses", "object store cut while it takes")
    await tried("test_object_store_flaps", place, server, server.new(), only)


@pytest.mark.campaign
async def test_every_object_store_fault(place, server):
    with volume(server.new(), "200m") as bucket:
        await tried("test_every_object_store_fault", place, server, bucket)


@pytest.mark.campaign
async def test_upload_through_a_cut_connection_runs_unchanged(place, server):
    name = "test_upload_through_a_cut_connection_runs_unchanged"
    await tried(name, place, server, server.new(), ("object store cut while it takes",), built=True)
