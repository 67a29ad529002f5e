"""Uploads files in parallel. Used by `upload`."""

from __future__ import annotations

import threading
from collections import deque

from runner.pid1.artifacts.files import ArtifactFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner.pid1.api.client import RunAPIClient

MAX_PARALLEL_UPLOADS = 4  # overlaps disk and network waits; more would only load the API
_RECHECK_SECONDS = 1.0


class UploadPool:
    """Upload threads with one connection each. Threads live for one batch, connections for the run."""

    def __init__(self, connect: Callable[[], RunAPIClient]) -> None:
        self._connect = connect
        self._clients: list[RunAPIClient] = []
        self._changed = threading.Condition()
        self._waiting: deque[ArtifactFile] = deque()
        self._sending: dict[str, int] = {}
        self._error: BaseException | None = None

    def upload_all(
        self,
        files: Sequence[ArtifactFile],
        fits: Callable[[ArtifactFile, int, int], bool],
        upload: Callable[[RunAPIClient, ArtifactFile], None],
    ) -> None:
        """Call `upload` for each file, in parallel, starting in this order; return when all have finished.

        `fits(file, count, bytes)` returns whether the limits allow the file besides so many files and bytes
        in transfer; if it returns False with none in transfer, the file is skipped. Called by one thread at a
        time. An exception of `upload` or `fits` ends the batch and is raised here.
        """
        self._waiting, self._error = deque(files), None
        while len(self._clients) < min(MAX_PARALLEL_UPLOADS, len(files)):
            self._clients.append(self._connect())
        others = [
            threading.Thread(
                target=self._worker, args=(client, fits, upload), name="upload worker", daemon=True
            )
            for client in self._clients[1 : len(files)]
        ]
        for thread in others:
            thread.start()
        if files:
            self._worker(self._clients[0], fits, upload)
        for thread in others:
            thread.join()  # the deadline of the calls bounds every wait of the thread
        if self._error is not None:
            raise self._error

    def _worker(
        self,
        client: RunAPIClient,
        fits: Callable[[ArtifactFile, int, int], bool],
        upload: Callable[[RunAPIClient, ArtifactFile], None],
    ) -> None:
        try:
            while (file := self._next(fits)) is not None:
                try:
                    upload(client, file)
                finally:
                    with self._changed:
                        del self._sending[file.name]
                        self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                self._error = self._error or error
                self._waiting.clear()
                self._changed.notify_all()

    def _next(self, fits: Callable[[ArtifactFile, int, int], bool]) -> ArtifactFile | None:
        with self._changed:
            while self._waiting:
                file = self._waiting[0]
                if fits(file, len(self._sending), sum(self._sending.values())):
                    self._sending[file.name] = file.size
                    return self._waiting.popleft()
                if self._sending:
                    # The API may reject one of them, which frees its share of the limits.
                    self._changed.wait(_RECHECK_SECONDS)
                elif self._waiting:
                    self._waiting.popleft()
        return None
