"""Download of an uploaded archive from the API into a checked tree. Called by build.source.fetch."""

import hashlib
import http.client
import tempfile
import time

from build.api_client import InternalApiClient
from build.errors import CONTEXT_INVALID, CONTEXT_TOO_LARGE, BuildRefused, InfrastructureError
from build.logs import BuildLog
from build.settings import ArchiveSource, SourceLimits
from build.source.archive import read_archive
from build.source.tree import CheckedSourceTree
from egress.git.repository_url import printable

_MAX_ATTEMPTS = 5
_CHUNK_BYTES = 256 << 10
_IN_MEMORY_BYTES = 16 << 20


def fetch_archive(
    source: ArchiveSource,
    api: InternalApiClient,
    limits: SourceLimits,
    log: BuildLog,
    crew: str | None = None,
) -> CheckedSourceTree:
    """Return the checked tree of the upload, of which `crew` may name an entrypoint.

    Raises BuildRefused or InfrastructureError.
    """
    log.line(f"fetching upload {source.upload}")
    for attempt in range(_MAX_ATTEMPTS):
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as packed:
            try:
                size, digest = _download(source, api, limits, packed)
            except (OSError, http.client.HTTPException, InfrastructureError) as error:
                if attempt + 1 == _MAX_ATTEMPTS:
                    raise InfrastructureError(f"cannot fetch the upload: {error}") from None
                log.line(f"fetch failed, retrying: {error}")
                time.sleep(0.3 * 2**attempt)
                continue
            if source.sha256 and digest != source.sha256.lower():
                raise BuildRefused(
                    CONTEXT_INVALID,
                    f"the upload's SHA-256 is {digest}, not {source.sha256}",
                    "Upload it again.",
                )
            packed.seek(0)
            return _unwrap(read_archive(packed, size, limits), crew or "", log)
    raise InfrastructureError("cannot fetch the upload")


def _unwrap(tree: CheckedSourceTree, crew: str, log: BuildLog) -> CheckedSourceTree:
    """Return the tree below its only directory, as in archives of GitHub, GitLab and of a folder.

    A directory that the entrypoint names, such as `src`, belongs to the source.
    """
    directories = {path.partition("/")[0] for path in tree if "/" in path}
    if len(directories) != 1 or any("/" not in path for path in tree):
        return tree
    file = crew.partition(":")[0]
    module = file.replace(".", "/")
    if any(path in tree for path in (file, f"{module}.py", f"{module}/__init__.py")):
        return tree
    (directory,) = directories
    log.line(f"all files are in {printable(directory)}/: reading the source from there")
    return tree.below(directory)


def _download(
    source: ArchiveSource,
    api: InternalApiClient,
    limits: SourceLimits,
    packed: "tempfile.SpooledTemporaryFile[bytes]",
) -> tuple[int, str]:
    response = api.get(f"/internal/v1/uploads/{source.upload}")
    with response:
        if response.status in (404, 410):
            raise BuildRefused(
                CONTEXT_INVALID, f"upload {source.upload} no longer exists", "Upload it again."
            )
        if response.status != 200:
            raise InfrastructureError(f"the API answered {response.status}")
        digest, size = hashlib.sha256(), 0
        while chunk := response.read(_CHUNK_BYTES):
            size += len(chunk)
            if size > limits.context_bytes:
                raise BuildRefused(
                    CONTEXT_TOO_LARGE,
                    f"the archive is larger than {limits.context_bytes} bytes",
                    "Exclude files that the crew does not need, for example data and virtual environments.",
                )
            digest.update(chunk)
            packed.write(chunk)
        if response.length:
            raise InfrastructureError("the response ended too early")
        return size, digest.hexdigest()
