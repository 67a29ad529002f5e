"""Stores the crew's artifacts, while it runs and at its end. A thread of its own, started by `work`."""

from __future__ import annotations

import os
import re
import stat
import threading
import time

from runner.pid1 import encode, files, signals
from runner.pid1.facade import Away, Facade, Lost, insist, parsed
from runner.pid1.queue import Events
from runner.pid1.until import Until
from runner.pid1.wire import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FAULTS = frozenset(
    {400, 404, 405, 411, 413, 414, 431}
)  # of the request itself, but not named by the protocol
_FAULTS_BORNE = 6  # then it is the file, and the others and the result shall not wait for it
_PIECE = 1024 * 1024
_KIND = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+\Z")
_SAID = 100  # dropped names that are said one by one


class Changed(Exception):
    """The file is not the same any more: it is taken up again later."""


class Upload(threading.Thread):
    """Uploads a file when nobody writes it and it is unchanged for a second; at the end all."""

    def __init__(
        self, facade: Facade, events: Events, until: Until, root: str, limits: dict[str, int], settle: float
    ) -> None:
        super().__init__(name="upload", daemon=True)
        self._facade = facade
        self._events = events
        self._until = until
        self._root = root
        self._limits = limits
        self._settle = settle
        self._seen: dict[str, tuple[files.Signature, float]] = {}
        self._versions: dict[str, files.Signature] = {}
        self._said: set[str] = set()
        self._ending = threading.Event()
        self._final = threading.Event()
        self.stored: dict[str, tuple[int, str]] = {}
        self.refused: dict[str, str] = {}
        self.partial = False
        self.lost = False
        self.away = ""

    def run(self) -> None:
        """Scans until told to finish, then once more for good."""
        try:
            while not self._ending.wait(self._settle):
                self._once(final=False)
            while not self._final.wait(0):
                if self._once(final=True):
                    break
        except Lost:
            self.lost = True
            signals.poke()
        except Away as error:
            self.away = str(error)

    def finish(self) -> None:
        """The crew is dead: store what is new or changed, then end. Join the thread afterwards."""
        self._ending.set()

    def again(self, names: list[str] | None = None) -> None:
        """Stores these files (or all) once more, in the caller's thread. Raises Away or Lost."""
        for name in list(self._versions) if names is None else names:
            self._versions.pop(name, None)
        self._once(final=True)

    def _once(self, final: bool) -> bool:
        """One scan; True if nothing changed under it."""
        found, dropped = files.scan(self._root)
        for name, reason in dropped.items():
            self._say(name, f"{_shown(name)} is not stored: {reason}.")
        now = time.monotonic()
        fresh = [file for file in found if self._versions.get(file.name) != file.signature]
        if not final:
            fresh = [file for file in fresh if self._settled(file, now)]
            held = files.being_written() if fresh else set()
            fresh = [file for file in fresh if (file.device, file.signature[0]) not in held]
        calm = True
        for file in fresh:
            if not final and self._ending.is_set():
                break  # the final scan takes the rest, with the right mark
            try:
                self._store(file)
            except Changed:
                calm = False
            except OSError as error:
                if final:
                    self._refuse(file, f"it cannot be read ({error.strerror})")
        return calm

    def _settled(self, file: files.Found, now: float) -> bool:
        signature, since = self._seen.get(file.name, (None, now))
        if signature != file.signature:
            self._seen[file.name] = (file.signature, now)
            return False
        return now - since >= self._settle

    def _store(self, file: files.Found) -> None:
        trouble = self._above_limit(file)
        if trouble:
            self._refuse(file, trouble)
            return
        descriptor = files.open_inside(self._root, file.path)
        try:
            status = os.fstat(descriptor)
            if (
                not stat.S_ISREG(status.st_mode)
                or files.Found(file.name, file.path, status).signature != file.signature
            ):
                raise Changed
            digest = _digest(descriptor, file.size)
            path = encoded(file.name)
            kind = content_type(file.name)
            partial = self.partial
            faults = 0

            def put() -> Answer:
                nonlocal faults
                pieces = _pieces(descriptor, file.size, digest)
                answer = self._facade.artifact(path, pieces, file.size, digest, kind, partial)
                faults += answer.status in _FAULTS
                return answer if faults < _FAULTS_BORNE or answer.status not in _FAULTS else Answer(422, b"")

            answer = insist(put, frozenset({200, 422}), self._until.pause)
        finally:
            os.close(descriptor)
        said = parsed(answer)
        if answer.status == 422:
            reason = f"the service refused it ({said.get('error') or 'no reason was given'})"
            self._refuse(file, reason if answer.body else "the service answered 4xx to it again and again")
            return
        self._versions[file.name] = file.signature
        self._seen.pop(file.name, None)
        self.refused.pop(file.name, None)
        self.stored[file.name] = (file.size, digest)

    def _above_limit(self, file: files.Found) -> str:
        others = {name: size for name, (size, _) in self.stored.items() if name != file.name}
        if len(others) >= self._limits["artifacts"]:
            return f"a run keeps {self._limits['artifacts']} files"
        if sum(others.values()) + file.size > self._limits["artifact_bytes"]:
            return f"a run keeps {self._limits['artifact_bytes']} bytes of files"
        return ""

    def _refuse(self, file: files.Found, reason: str) -> None:
        self._versions[file.name] = file.signature
        self.refused[file.name] = reason
        self._say(file.name, f"{_shown(file.name)} is not stored: {reason}.")

    def _say(self, name: str, message: str) -> None:
        if name in self._said or len(self._said) > _SAID:
            return
        self._said.add(name)
        if len(self._said) > _SAID:
            message = "More artifacts are not stored; they are not named here."
        self._events.put(
            encode.stamp(time.time_ns()), [("log", encode.log("artifacts: " + message, "warning"))]
        )


def encoded(name: str) -> str:
    """The name as a path, every segment percent-encoded. Pure."""
    from urllib.parse import quote  # imported with the first file: the start of a run does not wait for it

    return "/".join(quote(part, safe="") for part in name.split("/"))


def content_type(name: str) -> str:
    """A guess by the name's ending alone. Pure."""
    import mimetypes

    ending = os.path.splitext(name.rsplit("/", 1)[-1])[1]
    kind = mimetypes.guess_type("x" + ending)[0] if ending.isprintable() and ending.isascii() else None
    if not kind or not _KIND.match(kind):
        return "application/octet-stream"
    return kind + "; charset=utf-8" if kind.startswith("text/") else kind


def _shown(name: str) -> str:
    return repr(name.encode("utf-8", "backslashreplace").decode()[:200])


def _digest(descriptor: int, size: int) -> str:
    import hashlib

    total = hashlib.sha256()
    done = 0
    while done < size:
        piece = os.pread(descriptor, min(_PIECE, size - done), done)
        if not piece:
            raise Changed
        total.update(piece)
        done += len(piece)
    return total.hexdigest()


def _pieces(descriptor: int, size: int, digest: str) -> Iterator[bytes]:
    """The bytes again, the last piece only if they still are those that were counted."""
    import hashlib

    total = hashlib.sha256()
    done = 0
    while done < size:
        piece = os.pread(descriptor, min(_PIECE, size - done), done)
        total.update(piece)
        done += len(piece)
        if not piece or (done == size and total.hexdigest() != digest):
            raise Changed
        yield piece
