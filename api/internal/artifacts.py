"""`PUT /internal/v1/runs/{run}/artifacts/{name}`: store a file of a crew, then respond.

Called by `api.internal.routes`.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from aiohttp import hdrs, web

from api.internal import storage
from api.internal.context import InternalContext, PodApiError, authenticate_object
from api.internal.events import RUN_NOT_HELD
from api.store.errors import Mismatch, Missing, TooLarge
from api.store.index.artifacts import ArtifactRow
from crds import names
from crds.times import format_time
from plan.file_names import checkout_problem, relative_path_problem

MAX_NAME_BYTES = 1024
MAX_PARALLEL_FILES = 16
"""Files that a run may send at a time; a runner sends four."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CONTENT_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(; ?charset=[A-Za-z0-9_-]+)?")


async def put(context: InternalContext, request: web.Request) -> web.Response:
    """Store the file as the latest version and append its event once. 422 is permanent."""
    run, name = request.match_info["run"], request.match_info["name"]
    authenticate_object(context, request, "run", run)
    pod = request.headers.get("X-Crewyard-Pod", "")
    nonce = request.headers.get("X-Crewyard-Nonce", "")
    sha256 = request.headers.get("X-Crewyard-Sha256", "").lower()
    problem = name_problem(name)
    if problem:
        raise PodApiError(422, problem)
    if request.content_length is None or not _SHA256.fullmatch(sha256):
        raise PodApiError(400, "Content-Length and X-Crewyard-Sha256 (64 hexadecimal digits) are required")
    if not await context.store.claims.holds(run, pod, nonce):
        raise PodApiError(409, RUN_NOT_HELD)
    context.store.volume.check_room()
    with _receiving(context, run, name, request.content_length):
        return await _receive(context, request, run, name, sha256, request.content_length, pod, nonce)


async def _receive(
    context: InternalContext,
    request: web.Request,
    run: str,
    name: str,
    sha256: str,
    size: int,
    pod: str,
    nonce: str,
) -> web.Response:
    await _check_limits(context, run, name)
    # One blob per name and content: uploads run in parallel, and deleting a replaced blob must not
    # delete the bytes of another name. Those of the same name are checked before the row.
    name_hash = hashlib.sha256(name.encode()).hexdigest()[:16]
    blob = f"{context.config.namespace}/runs/{run}/{sha256}-{name_hash}"
    try:
        await context.store.blobs.put(blob, request.content.iter_any(), size, sha256)
    except (Mismatch, TooLarge) as error:
        raise PodApiError(400, error.message) from error
    row = await _store_row(context, request, run, name, sha256, blob, pod, nonce)
    return web.json_response({"name": row.name, "size": row.size, "sha256": row.sha256})


async def _store_row(
    context: InternalContext,
    request: web.Request,
    run: str,
    name: str,
    sha256: str,
    blob: str,
    pod: str,
    nonce: str,
) -> ArtifactRow:
    content_type = request.headers.get(hdrs.CONTENT_TYPE, "")
    project = await context.store.project_storage.project_of(run)
    async with context.store.events.open_writer(run) as log:
        if not await context.store.claims.holds(run, pod, nonce):
            raise PodApiError(409, RUN_NOT_HELD)
        if request.transport is None or request.transport.is_closing():
            # The runner resends this version or a newer one, which this one must not replace.
            raise PodApiError(503, "the connection closed before the file was stored; send it again")
        previous = await context.store.artifacts.get(run, name)
        try:
            # Parallel uploads may have stored other files since the first check.
            await _check_limits(context, run, name)
        except PodApiError:
            if previous is None or previous.blob != blob:
                await context.store.blobs.delete(blob)
            raise
        try:
            # Another version may have deleted them: it replaced a row with the same bytes.
            await context.store.blobs.size(blob)
        except Missing as error:
            raise PodApiError(503, "the file was replaced while it was sent; send it again") from error
        row = await context.store.artifacts.put(
            run,
            name,
            request.content_length or 0,
            sha256,
            content_type if _CONTENT_TYPE.fullmatch(content_type) else "application/octet-stream",
            request.headers.get("X-Crewyard-Partial", "false").lower() == "true",
            blob,
            datetime.now(UTC),
        )
        if project is not None:
            grown = row.size - (previous.size if previous else 0)
            context.store.project_storage.add(project, artifact_bytes=grown)
        await log.append_artifact(row.version, _event(row))
        # Delete under the lock: no other call checks the same blob meanwhile.
        if (
            previous
            and previous.blob != blob
            and not await context.store.artifacts.is_blob_used(run, previous.blob)
        ):
            await context.store.blobs.delete(previous.blob)
    context.store.events.notify_appended(run)
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


@contextmanager
def _receiving(context: InternalContext, run: str, name: str, size: int) -> Iterator[None]:
    """Count the file among those that the run is sending. Raises PodApiError 503 for too many at a time."""
    arriving = context.arriving_files.setdefault(run, [])
    if len(arriving) >= MAX_PARALLEL_FILES:
        raise PodApiError(503, f"the run is sending {len(arriving)} files already; send this one again later")
    arriving.append((name, size))
    try:
        yield
    finally:
        arriving.remove((name, size))
        if not arriving:
            context.arriving_files.pop(run, None)


async def _check_limits(context: InternalContext, run: str, name: str) -> None:
    """Raise PodApiError 422 if the run's files, those that are arriving included, exceed a limit."""
    # A file that is sent again counts once. This comes first, because a file leaves it once it is stored.
    arriving = dict(context.arriving_files.get(run, ()))
    usage = await context.store.artifacts.totals(run, excluding=name)
    limits = await storage.limits_of(context, run)
    # An arriving file may have its row already, or replace a stored one: the larger of both counts.
    stored = await context.store.artifacts.sizes(run, arriving.keys())
    replaced = min(arriving.get(name, 0), stored.pop(name, 0))
    added = sum(max(0, size - stored.get(other, 0)) for other, size in arriving.items())
    problem = await storage.project_problem(context, run, added - replaced)
    if problem:
        raise PodApiError(422, problem)
    if usage.count >= limits.artifacts:
        raise PodApiError(422, f"a run can have at most {limits.artifacts} artifacts")
    if usage.bytes + added > limits.artifact_bytes:
        raise PodApiError(422, f"a run's artifacts can have at most {limits.artifact_bytes} bytes in total")


def name_problem(name: str) -> str | None:
    """Return why an artifact name is invalid, or None for a relative path that changes no checkout."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "the name is not valid UTF-8"
    if size > MAX_NAME_BYTES:
        return f"the name is longer than {MAX_NAME_BYTES} bytes"
    if relative_path_problem(name):
        return "the name is not a relative path below the artifacts directory"
    return checkout_problem(name)
