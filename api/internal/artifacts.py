"""`PUT /internal/v1/runs/{run}/artifacts/{name}`: a file of a crew, stored before it is answered."""

import hashlib
import re
from datetime import UTC, datetime

from aiohttp import hdrs, web

from api.internal.context import Refusal, Yard, token
from api.internal.events import NOT_YOURS
from api.store.errors import Mismatch, TooLarge
from api.store.index.artifacts import ArtifactRow
from crds import names
from crds.times import format_time

MAX_NAME = 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(; ?charset=[A-Za-z0-9_-]+)?")


async def put(yard: Yard, request: web.Request) -> web.Response:
    """Stores the file as the latest version and emits its event once. 422: refused for good."""
    run, name = request.match_info["run"], request.match_info["name"]
    token(yard, request, "run", run)
    pod = request.headers.get("X-Crewyard-Pod", "")
    nonce = request.headers.get("X-Crewyard-Nonce", "")
    sha256 = request.headers.get("X-Crewyard-Sha256", "").lower()
    problem = name_problem(name)
    if problem:
        raise Refusal(422, problem)
    if request.content_length is None or not _SHA256.fullmatch(sha256):
        raise Refusal(400, "Content-Length and X-Crewyard-Sha256 are needed")
    if not await yard.store.claims.holds(run, pod, nonce):
        raise Refusal(409, NOT_YOURS)
    await _room(yard, run, name, request.content_length)
    # A name has its own bytes: several are stored at once, and what one replaces no other may need.
    own = hashlib.sha256(name.encode()).hexdigest()[:16]
    blob = f"{yard.config.namespace}/runs/{run}/{sha256}-{own}"
    try:
        await yard.store.blobs.put(blob, request.content.iter_any(), request.content_length, sha256)
    except (Mismatch, TooLarge) as error:
        raise Refusal(400, error.message) from error
    row = await _record(yard, request, run, name, sha256, blob, pod, nonce)
    return web.json_response({"name": row.name, "size": row.size, "sha256": row.sha256})


async def _record(
    yard: Yard, request: web.Request, run: str, name: str, sha256: str, blob: str, pod: str, nonce: str
) -> ArtifactRow:
    content_type = request.headers.get(hdrs.CONTENT_TYPE, "")
    before = await yard.store.artifacts.get(run, name)
    async with yard.store.events.hold(run) as log:
        if not await yard.store.claims.holds(run, pod, nonce):
            raise Refusal(409, NOT_YOURS)
        if request.transport is None or request.transport.is_closing():
            # The runner sends it again, or a newer version, which this one must not replace.
            raise Refusal(503, "the connection was closed before the file was stored")
        try:
            # Others may have been stored since this one began.
            await _room(yard, run, name, request.content_length or 0)
        except Refusal:
            if before is None or before.blob != blob:
                await yard.store.blobs.delete(blob)
            raise
        row = await yard.store.artifacts.put(
            run,
            name,
            request.content_length or 0,
            sha256,
            content_type if _TYPE.fullmatch(content_type) else "application/octet-stream",
            request.headers.get("X-Crewyard-Partial", "false").lower() == "true",
            blob,
            datetime.now(UTC),
        )
        await log.stored(row.version, _event(row))
        # Within the hold, so that no other call brings the same bytes back meanwhile.
        if before and before.blob != blob and not await yard.store.artifacts.uses(run, before.blob):
            await yard.store.blobs.delete(before.blob)
    yard.store.events.told(run)
    return row


def _event(row: ArtifactRow) -> dict[str, object]:
    return {
        "run_id": names.id_of(row.run),
        "timestamp": format_time(row.created_at),
        "name": row.name,
        "size": row.size,
        "content_type": row.content_type,
        "sha256": row.sha256,
        "partial": row.partial,
    }


async def _room(yard: Yard, run: str, name: str, size: int) -> None:
    held, limits = await yard.store.artifacts.held(run, without=name), yard.config.limits
    if held.count >= limits.artifacts:
        raise Refusal(422, f"a run keeps at most {limits.artifacts} artifacts")
    if held.bytes + size > limits.artifact_bytes:
        raise Refusal(422, f"a run's artifacts have at most {limits.artifact_bytes} bytes in all")


def name_problem(name: str) -> str | None:
    """Why a name cannot be an artifact's, or None: it is a relative path without `.` and `..`."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "the name is no UTF-8"
    if size > MAX_NAME:
        return f"the name is longer than {MAX_NAME} bytes"
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        return "the name is no relative path below the artifacts' directory"
    return None
