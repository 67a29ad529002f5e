"""The continuous caller reports each wrong response."""

import asyncio
import hashlib
from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp import web

from tests.campaign.checks.observed import ApiRunRecord
from tests.campaign.outages.caller import CUT, ContinuousCaller
from tests.campaign.outages.sources import disagreement

SOON = 60.0
DATA = b"the whole artifact"
SHA = hashlib.sha256(DATA).hexdigest()
UNAVAILABLE = {"error": {"code": "unavailable", "message": "try again", "details": {}}}


async def asked(answer, seconds=SOON):
    """What an asker has to say of a service that answers so, once each of its calls was answered."""
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    api = SimpleNamespace(url=f"http://127.0.0.1:{runner.addresses[0][1]}")
    async with aiohttp.ClientSession() as session:
        caller = ContinuousCaller(SimpleNamespace(api=api, session=session, key="k", project="crew"))
        caller.set_artifact("run-a", "a.bin", SHA)
        async with caller.calling(), asyncio.timeout(seconds):
            while {call for call, _ in caller.seen} != {"ready", "project", "runs", "artifact"}:
                await asyncio.sleep(0.01)
    await runner.cleanup()
    return caller


async def test_success_and_503_with_retry_after_are_accepted():
    async def answer(request):
        if "artifacts" in request.path:
            return web.Response(body=DATA)
        return web.json_response(UNAVAILABLE, status=503, headers={"Retry-After": "2"})

    caller = await asked(answer)
    assert caller.wrong == [] and caller.count("artifact", 200) > 0 and caller.count("ready", 503) > 0


@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (500, UNAVAILABLE, {"Retry-After": "2"}),
        (404, {"error": {"code": "not_found", "message": "gone"}}, {}),
        (503, UNAVAILABLE, {}),
        (503, {"error": {"code": "unavailable", "message": ""}}, {"Retry-After": "2"}),
        (503, {"error": {"code": "internal_error", "message": "x"}}, {"Retry-After": "2"}),
        (200, {"not": "the artifact"}, {}),
    ],
)
async def test_other_responses_are_violations(status, body, headers):
    async def answer(_):
        return web.json_response(body, status=status, headers=headers)

    assert (await asked(answer)).wrong


async def test_truncated_body_is_a_violation():
    async def answer(request):
        response = web.StreamResponse(headers={"Content-Length": str(len(DATA))})
        await response.prepare(request)
        await response.write(DATA[:5])
        request.transport.close()
        return response

    caller = await asked(answer)
    assert caller.count("artifact", CUT) > 0 and caller.wrong == []


def test_mismatch_of_files_and_rows_is_reported(tmp_path):
    folder = tmp_path / "crews/runs/run-a"
    folder.mkdir(parents=True)
    runs = {"run-a": ApiRunRecord("run-a", "succeeded", artifacts={"a.bin": SHA})}
    assert disagreement(tmp_path, runs), "the file is missing"
    (folder / f"{SHA}-0123").write_bytes(DATA)
    assert disagreement(tmp_path, runs) == []
    (folder / f"{SHA}-0123").write_bytes(DATA[:-1])
    assert "torn" in disagreement(tmp_path, runs)[0]
    (folder / f"{SHA}-0123").write_bytes(DATA)
    (folder / f"{SHA}-0123#1").write_bytes(DATA[:3])
    assert "started and left" in disagreement(tmp_path, runs)[0]
    (folder / f"{SHA}-0123#1").unlink()
    other = hashlib.sha256(b"other").hexdigest()
    (folder / f"{other}-0123").write_bytes(b"other")
    assert "2 files" in disagreement(tmp_path, runs)[0]
