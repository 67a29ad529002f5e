"""Upload of one file: open, hash, send until the API accepts or rejects it. Used by `upload`."""

from __future__ import annotations

import os
import stat

from runner.pid1.api.client import RunAPIClient, json_object, retry_until_status
from runner.pid1.api.http import HTTPResponse
from runner.pid1.artifacts import files
from runner.pid1.artifacts.content import FileChanged, content_type, encode_path, read_chunks, sha256_hex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Errors of the request itself, which the protocol does not define.
_REQUEST_ERRORS = frozenset({400, 404, 405, 411, 413, 414, 431})
_MAX_REQUEST_ERRORS = 6  # then the file is the cause, and must not delay the other files and the result


class ArtifactRefused(Exception):
    """The API rejects this file; the message says why."""


def upload_file(
    client: RunAPIClient, file: files.ArtifactFile, partial: bool, pause: Callable[[float], bool]
) -> str:
    """Upload the scanned version of the file and return its SHA-256. Blocks.

    `pause` is that of `retry_until_status`. Raises FileChanged, ArtifactRefused, APIUnavailable, RunLost, and
    OSError if the file cannot be read.
    """
    descriptor = files.open_inside(file.root, file.path)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or _has_changed(descriptor, file):
            raise FileChanged
        sha256 = sha256_hex(descriptor, file.size)
        path, kind = encode_path(file.name), content_type(file.name)
        request_errors = 0

        def put() -> HTTPResponse:
            nonlocal request_errors
            if _has_changed(descriptor, file):
                raise FileChanged
            body = _verified_chunks(descriptor, file)
            response = client.artifact(path, body, file.size, sha256, kind, partial)
            request_errors += response.status in _REQUEST_ERRORS
            # A memory-mapped file changes without a new ctime until write-back; the API saw the wrong digest.
            if response.status == 400 and sha256_hex(descriptor, file.size) != sha256:
                raise FileChanged
            return (
                response
                if request_errors < _MAX_REQUEST_ERRORS or response.status not in _REQUEST_ERRORS
                else HTTPResponse(422, b"")
            )

        response = retry_until_status(put, frozenset({200, 422}), pause)
    finally:
        os.close(descriptor)
    if response.status == 422:
        if not response.body:
            raise ArtifactRefused("the service responded 4xx to it repeatedly")
        raise ArtifactRefused(
            f"the service rejected it ({json_object(response).get('error') or 'no reason was given'})"
        )
    return sha256


def _verified_chunks(descriptor: int, file: files.ArtifactFile) -> Iterator[bytes]:
    """Yield the bytes of the file, the last chunk only if the file is unchanged."""
    bytes_left = file.size
    for chunk in read_chunks(descriptor, file.size):
        bytes_left -= len(chunk)
        if not bytes_left and _has_changed(descriptor, file):
            raise FileChanged
        yield chunk


def _has_changed(descriptor: int, file: files.ArtifactFile) -> bool:
    now = files.ArtifactFile(file.root, file.name, file.path, os.fstat(descriptor))
    return now.signature != file.signature
