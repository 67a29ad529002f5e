"""The calls of build pods: append to the build log, download the source archive.

Called by `api.internal.routes`.
"""

from typing import Any

from aiohttp import web

from api.internal.context import (
    InternalContext,
    PodApiError,
    authenticate,
    authenticate_object,
    int_field,
    read_json,
    text_field,
)
from api.projection.deployment_rows import current_row
from api.routing import download
from api.store.errors import StoreUnavailable
from api.store.index.deployments.deployments import DeploymentRow
from api.store.index.uploads import UploadRow
from api.store.logs.build_logs import Chunk
from crds.pod_tokens import PodToken

MAX_CHUNKS_PER_CALL = 500
MAX_CHUNK_CHARACTERS = 256 * 1024


async def append_logs(context: InternalContext, request: web.Request) -> web.Response:
    """Handle `POST /internal/v1/builds/{deployment}/logs`: store each numbered chunk once.

    404 if the Deployment is deleted: its log is deleted too, including chunks that arrive late.
    """
    deployment = request.match_info["deployment"]
    token = authenticate_object(context, request, "build", deployment)
    uid = token.uid
    body = await read_json(request)
    pod, container = text_field(body, "pod"), text_field(body, "container")
    logs, chunks = context.store.build_logs, _chunks(body)
    key = await logs.key(deployment, uid)
    context.store.volume.check_room()
    acknowledged = await logs.append(key, pod, container, chunks)
    # Check after the append: deleting the Deployment from here on deletes its log too.
    row = await _row(context, token)
    if row is None:
        await context.store.expired_records.note_build_log(key)
        raise PodApiError(404, "the deployment was deleted")
    return web.json_response({"acknowledged": acknowledged})


async def download_upload(context: InternalContext, request: web.Request) -> web.StreamResponse:
    """Handle `GET /internal/v1/uploads/{upload}`: send the archive to builds from it."""
    name = request.match_info["upload"]
    deployment = await _row(context, authenticate(context, request, "build"))
    if deployment is None or _source_upload(deployment) != name:
        raise PodApiError(404, "the deployment's source is another upload")
    row = await context.store.uploads.get(name)
    if row is None or row.stored_at is None or not await _is_in_reach(context, row, deployment):
        raise PodApiError(404, "upload not found")
    response = web.StreamResponse(headers={"X-Crewyard-Sha256": row.sha256 or ""})
    response.content_type = "application/octet-stream"
    response.content_length = row.size
    await response.prepare(request)
    try:
        async for chunk in context.store.blobs.read(row.blob, 0, row.size):
            await download.write(request, response, chunk)
    except StoreUnavailable as error:
        # An error response would be a part of the archive for the pod.
        raise ConnectionResetError(f"the archive {name} cannot be read to its end") from error
    await response.write_eof()
    return response


def _chunks(body: dict[str, Any]) -> list[Chunk]:
    items = body.get("chunks")
    if not isinstance(items, list) or len(items) > MAX_CHUNKS_PER_CALL:
        raise PodApiError(400, f"chunks must be a list of at most {MAX_CHUNKS_PER_CALL} objects")
    chunks = []
    for item in items:
        if not isinstance(item, dict):
            raise PodApiError(400, "chunks must be a list of objects with seq and text")
        chunks.append(Chunk(int_field(item, "seq"), str(item.get("text", ""))[:MAX_CHUNK_CHARACTERS]))
    return chunks


def _source_upload(deployment: DeploymentRow) -> str | None:
    archive: dict[str, Any] = (deployment.spec.get("source") or {}).get("archive") or {}
    return archive.get("upload")


async def _is_in_reach(context: InternalContext, upload: UploadRow, deployment: DeploymentRow) -> bool:
    """Return whether the upload's project is in the namespace of the deployment, or is deleted."""
    project = await context.store.projects.get(upload.project)
    return project is None or project.object_namespace == deployment.object_namespace


async def _row(context: InternalContext, token: PodToken) -> DeploymentRow | None:
    """Return the row of the token's Deployment, or None if it is deleted."""
    return await current_row(context.store, context.kube_of(token), token.name, token.uid)
