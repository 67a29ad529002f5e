"""The calls of build pods: their log, and the archive they build from."""

from typing import Any

from aiohttp import web

from api.internal.pods import Refusal, Yard, bearer, body, number, text, token
from api.store.buildlogs import Chunk
from crds.kinds import DEPLOYMENT
from crds.objects import Deployment

MOST = 500
CHUNK_BYTES = 256 * 1024


async def logs(yard: Yard, request: web.Request) -> web.Response:
    """`POST /internal/v1/builds/{deployment}/logs`: numbered chunks, each stored once."""
    deployment = request.match_info["deployment"]
    uid = token(yard, request, "build", deployment).uid
    sent = await body(request)
    pod, container = text(sent, "pod"), text(sent, "container")
    logs, chunks = yard.store.buildlogs, _chunks(sent)
    found = await logs.append(await logs.key(deployment, uid), pod, container, chunks)
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
    row = await yard.store.deployments.get(deployment)
    spec = row.spec if row else None
    if spec is None:
        found = await yard.kube.get(DEPLOYMENT, deployment)
        if found is None:
            return None
        await yard.store.deployments.observe(Deployment(found))
        spec = found["spec"]
    archive: dict[str, Any] = (spec.get("source") or {}).get("archive") or {}
    return archive.get("upload")
