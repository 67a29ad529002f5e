"""One file's way to the facade: opened, hashed, sent until it is taken or refused. Used by `upload`."""

from __future__ import annotations

import os
import stat

from runner.pid1.api.client import Facade, insist, parsed
from runner.pid1.api.http import Answer
from runner.pid1.artifacts import files
from runner.pid1.artifacts.content import Changed, content_type, digest, encoded, pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Faults of the request itself, which the protocol does not name.
_FAULTS = frozenset({400, 404, 405, 411, 413, 414, 431})
_FAULTS_BORNE = 6  # then it is the file, and the others and the result shall not wait for it


class Refused(Exception):
    """The facade does not take this file; the text says why."""


def transfer(
    facade: Facade, root: str, file: files.Found, partial: bool, pause: Callable[[float], bool]
) -> str:
    """Stores the file as it was found; gives its SHA-256. Blocks; `pause` is `insist`'s.

    Raises Changed, Refused, OSError where it cannot be read, Away and Lost.
    """
    descriptor = files.open_inside(root, file.path)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or _differs(descriptor, file):
            raise Changed
        sha256 = digest(descriptor, file.size)
        path, kind = encoded(file.name), content_type(file.name)
        faults = 0

        def put() -> Answer:
            nonlocal faults
            if _differs(descriptor, file):
                raise Changed
            body = _whole(descriptor, file)
            answer = facade.artifact(path, body, file.size, sha256, kind, partial)
            faults += answer.status in _FAULTS
            # A mapped file changes without a trace until the kernel writes it: the facade noticed.
            if answer.status == 400 and digest(descriptor, file.size) != sha256:
                raise Changed
            return answer if faults < _FAULTS_BORNE or answer.status not in _FAULTS else Answer(422, b"")

        answer = insist(put, frozenset({200, 422}), pause)
    finally:
        os.close(descriptor)
    if answer.status == 422:
        if not answer.body:
            raise Refused("the service answered 4xx to it again and again")
        raise Refused(f"the service refused it ({parsed(answer).get('error') or 'no reason was given'})")
    return sha256


def _whole(descriptor: int, file: files.Found) -> Iterator[bytes]:
    """The file's bytes, the last of them only if it is the same still."""
    left = file.size
    for piece in pieces(descriptor, file.size):
        left -= len(piece)
        if not left and _differs(descriptor, file):
            raise Changed
        yield piece


def _differs(descriptor: int, file: files.Found) -> bool:
    return files.Found(file.name, file.path, os.fstat(descriptor)).signature != file.signature
