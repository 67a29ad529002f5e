"""The calls of build pods: their log, and the archive they build from."""

from typing import Any

from aiohttp import web

from api.internal.context import Refusal, Yard, bearer, body, number, text, token
from api.store.index.deployments import DeploymentRow
from api.store.logs.build_logs import Chunk
from crds.kinds import DEPLOYMENT
from crds.objects import Deployment

MOST = 500
CHUNK_BYTES = 256 * 1024


async def logs(yard: Yard, request: web.Request) -> web.Response:
    """`POST /internal/v1/builds/{deployment}/logs`: numbered chunks, each stored once.

    404 where the Deployment is gone: nothing is kept of it, and of what comes late neither.
    """
    deployment = request.match_info["deployment"]
    uid = token(yard, request, "build", deployment).uid
    sent = await body(request)
    pod, container = text(sent, "pod"), text(sent, "container")
    logs, chunks = yard.store.buildlogs, _chunks(sent)
    key = await logs.key(deployment, uid)
    found = await logs.append(key, pod, container, chunks)
    # Asked afterwards: a Deployment that goes from here on takes its log with it.
    row = await _row(yard, deployment, uid)
    if row is None or row.uid != uid:
        await yard.store.records.leave_build(key)
        raise Refusal(404, "the deployment is gone")
    return web.json_response({"acknowledged": found})


async def upload(yard: Yard, request: web.Request) -> web.StreamResponse:
    """`GET /internal/v1/uploads/{upload}`: the bytes, only for a build of a deployment made from them."""
    name = request.match_info["upload"]
    deployment = bearer(yard, request, "build").name
    if await _source(yard, deployment) != name:
        raise Refusal(404, "the deployment is not made from this upload")
    row = await yard.store.uploads.get(name)
    if row is None or row.stored_at is None:
        raise Refusal(404, "there is no such upload")
    response = web.StreamResponse(headers={"X-Crewyard-Sha256": row.sha256 or ""})
    response.content_type = "application/octet-stream"
    response.content_length = row.size
    await response.prepare(request)
    async for chunk in yard.store.blobs.read(row.blob):
        await response.write(chunk)
    await response.write_eof()
    return response


def _chunks(sent: dict[str, Any]) -> list[Chunk]:
    found = sent.get("chunks")
    if not isinstance(found, list) or len(found) > MOST:
        raise Refusal(400, f"chunks must be a list of at most {MOST}")
    chunks = []
    for item in found:
        if not isinstance(item, dict):
            raise Refusal(400, "chunks must be a list of objects with seq and text")
        chunks.append(Chunk(number(item, "seq"), str(item.get("text", ""))[:CHUNK_BYTES]))
    return chunks


async def _source(yard: Yard, deployment: str) -> str | None:
    row = await _row(yard, deployment)
    archive: dict[str, Any] = ((row.spec if row else {}).get("source") or {}).get("archive") or {}
    return archive.get("upload")


async def _row(yard: Yard, deployment: str, uid: str | None = None) -> DeploymentRow | None:
    """The Deployment's row; where there is none (of that uid) the object is asked for, which may be newer."""
    row = await yard.store.deployments.get(deployment)
    if row is not None and uid in (None, row.uid):
        return row
    found = await yard.kube.get(DEPLOYMENT, deployment)
    if found is None:
        return None
    await yard.store.deployments.observe(Deployment(found))
    return await yard.store.deployments.get(deployment)
