"""An uploaded archive, from the facade, into a checked tree. Called by build.source.fetch."""

import hashlib
import http.client
import tempfile
import time

from build.api_client import Facade
from build.errors import CONTEXT_INVALID, CONTEXT_TOO_LARGE, Infrastructure, Refused
from build.logs import Log
from build.settings import ArchiveSource, Limits
from build.source.archive import read_archive
from build.source.tree import SourceTree

_ATTEMPTS = 5
_CHUNK = 256 << 10
_IN_MEMORY_BYTES = 16 << 20


def fetch_archive(source: ArchiveSource, facade: Facade, limits: Limits, log: Log) -> SourceTree:
    """The checked content of the upload. Raises Refused or Infrastructure."""
    log.line(f"fetching upload {source.upload}")
    for attempt in range(_ATTEMPTS):
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as packed:
            try:
                size, digest = _download(source, facade, limits, packed)
            except (OSError, http.client.HTTPException, Infrastructure) as error:
                if attempt + 1 == _ATTEMPTS:
                    raise Infrastructure(f"the upload cannot be fetched: {error}") from None
                log.line(f"fetching failed, trying again: {error}")
                time.sleep(0.3 * 2**attempt)
                continue
            if digest != source.sha256.lower():
                raise Refused(
                    CONTEXT_INVALID,
                    f"the upload's SHA-256 is {digest}, not {source.sha256}",
                    "Upload it again.",
                )
            packed.seek(0)
            return read_archive(packed, size, limits)
    raise Infrastructure("the upload cannot be fetched")


def _download(
    source: ArchiveSource, facade: Facade, limits: Limits, packed: "tempfile.SpooledTemporaryFile[bytes]"
) -> tuple[int, str]:
    answer = facade.get(f"/internal/v1/uploads/{source.upload}")
    with answer:
        if answer.status in (404, 410):
            raise Refused(CONTEXT_INVALID, f"there is no upload {source.upload} any more", "Upload it again.")
        if answer.status != 200:
            raise Infrastructure(f"the facade answered {answer.status}")
        digest, size = hashlib.sha256(), 0
        while chunk := answer.read(_CHUNK):
            size += len(chunk)
            if size > limits.context_bytes:
                raise Refused(
                    CONTEXT_TOO_LARGE,
                    f"the archive is larger than {limits.context_bytes} bytes",
                    "Leave out what the crew does not need, for example data and virtual environments.",
                )
            digest.update(chunk)
            packed.write(chunk)
        if answer.length:
            raise Infrastructure("the answer ended too early")
        return size, digest.hexdigest()
