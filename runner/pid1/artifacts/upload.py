"""Uploads the crew's artifacts while it runs and after its exit. A separate thread, started by `work`."""

from __future__ import annotations

import threading
import time

from runner.pid1.api.client import APIUnavailable, RunAPIClient, RunLost
from runner.pid1.artifacts import files
from runner.pid1.artifacts.content import FileChanged
from runner.pid1.artifacts.outside import WrittenFiles, warning
from runner.pid1.artifacts.transfer import ArtifactRefused, upload_file
from runner.pid1.artifacts.upload_pool import UploadPool
from runner.pid1.deadline import Deadline
from runner.pid1.output import encode
from runner.pid1.output.event_queue import EventQueue
from runner.pid1.process import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_PAUSE_FACTOR = 9  # ratio of a pause to the CPU time of the preceding scan
_MAX_REPORTED_NAMES = 100  # files reported individually


class ArtifactUploader(threading.Thread):
    """Uploads a file when no process writes it and it is unchanged for `settle` seconds; finally all files.

    Uploads files in parallel. After the thread has finished, read `stored` (name to bytes and sha256),
    `over_limit` (files above the run's limits), `refused` (files that could not be stored) with reasons, and
    `failure`, why the rest could not be stored.
    """

    def __init__(
        self, connect: Callable[[], RunAPIClient], events: EventQueue, deadline: Deadline, root: str,
        limits: dict[str, int], settle_seconds: float, outside: WrittenFiles | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name="upload", daemon=True)
        self._pool = UploadPool(connect)
        self._events = events
        self._deadline = deadline
        self._root = root
        self._limits = limits
        self._outside = outside
        self._declared: Collection[str] | None = None
        self._others: list[str] | None = None
        self._settle_seconds = settle_seconds
        self._first_seen: dict[str, tuple[files.FileSignature, float]] = {}
        self._versions: dict[str, files.FileSignature] = {}
        self._reported: set[str] = set()
        self._report_lock = threading.Lock()
        self._finishing = threading.Event()
        self._scan_seconds = 0.0  # CPU time of the last scan
        self.stored: dict[str, tuple[int, str]] = {}
        self.refused: dict[str, str] = {}
        self.over_limit: dict[str, str] = {}
        self.partial = False
        self.lost = False
        self.failure = ""

    def run(self) -> None:
        """Scan and upload until `finish` is called, then once more for the final versions."""
        try:
            pause = self._settle_seconds
            while not self._finishing.wait(pause):
                self._scan_and_upload(final=False)
                pause = max(self._settle_seconds, _PAUSE_FACTOR * self._scan_seconds)
            while not self._scan_and_upload(final=True):
                if self._deadline.pause(self._settle_seconds):
                    raise APIUnavailable("files are still changing")
        except RunLost:
            self.lost = True
            signals.wake_main_thread()
        except APIUnavailable as error:
            self.failure = str(error)
        except Exception as error:
            # After any error, report the files that are not stored as lost.
            self.failure = f"{type(error).__name__}: {error}"

    def finish(self, declared: Collection[str] = ()) -> None:
        """Start the final scan after the crew's exit. Join the thread afterwards.

        `declared` are files outside the directory that the crew named as its results.
        """
        self._declared = declared
        self._finishing.set()

    def upload_again(self, names: list[str] | None = None) -> None:
        """Upload these files (None: all) again, in the caller's thread. Raises APIUnavailable or RunLost."""
        for name in list(self._versions) if names is None else names:
            self._versions.pop(name, None)
        self._scan_and_upload(final=True)

    def _scan_and_upload(self, final: bool) -> bool:
        """Scan once and upload; return True if no file changed meanwhile."""
        started = time.thread_time()
        scanned, dropped = files.scan(self._root)
        if final:
            scanned += self._kept_outside({file.name for file in scanned})
        self._evict_removed({file.name for file in scanned})
        for name, reason in dropped.items():
            self._report(name, f"{_display_name(name)} is not stored: {reason}.")
        now = time.monotonic()
        fresh = [file for file in scanned if self._versions.get(file.name) != file.signature]
        if not final:
            fresh = [file for file in fresh if self._settled(file, now)]
            open_inodes = files.open_for_writing() if fresh else set()
            fresh = [file for file in fresh if (file.device, file.signature[0]) not in open_inodes]
        self._scan_seconds = time.thread_time() - started
        changed: list[str] = []

        def store(client: RunAPIClient, file: files.ArtifactFile) -> None:
            if not final and self._finishing.is_set():
                return  # the final scan uploads the rest, with the right `partial` flag
            try:
                self._store(client, file)
            except FileChanged:
                changed.append(file.name)
            except ArtifactRefused as reason:
                self._refuse(file, str(reason))
            except OSError as error:
                if final:
                    self._refuse(file, f"it cannot be read ({error.strerror})")

        self._pool.upload_all(fresh, self._fits, store)
        return not changed

    def _kept_outside(self, names: set[str]) -> list[files.ArtifactFile]:
        """Return the files to keep beside the artifacts' `names`; name the others in one warning."""
        if self._outside is None:
            return []
        kept, others = self._outside.split(self._declared or ())
        others += [file.name for file in kept if file.name in names]
        if others and self._others is None:
            message = encode.log(warning(others), "warning")
            self._events.put(encode.timestamp(time.time_ns()), [("log", message)])
        self._others = others
        return [file for file in kept if file.name not in names]

    def _evict_removed(self, scanned: set[str]) -> None:
        """Evict removed files that were never stored: a crew may create and remove files for hours."""
        for cache in (self._first_seen, self._versions, self.over_limit):
            for name in [name for name in cache if name not in scanned and name not in self.stored]:
                del cache[name]
        for name in [name for name in self.refused if name not in scanned]:
            del self.refused[name]  # the crew has removed or renamed what the service rejected

    def _settled(self, file: files.ArtifactFile, now: float) -> bool:
        signature, since = self._first_seen.get(file.name, (None, now))
        if signature != file.signature:
            self._first_seen[file.name] = (file.signature, now)
            return False
        return now - since >= self._settle_seconds

    def _store(self, client: RunAPIClient, file: files.ArtifactFile) -> None:
        sha256 = upload_file(client, file, self.partial, self._deadline.pause)
        self._versions[file.name] = file.signature
        self._first_seen.pop(file.name, None)
        self.refused.pop(file.name, None)
        self.over_limit.pop(file.name, None)
        self.stored[file.name] = (file.size, sha256)

    def _fits(self, file: files.ArtifactFile, count: int, size: int) -> bool:
        """Return whether the limits allow it besides `count` files of `size` bytes in transfer."""
        # An atomic copy: the other upload threads modify `stored`.
        others = [stored for name, (stored, _) in self.stored.copy().items() if name != file.name]
        if len(others) + count >= self._limits["artifacts"]:
            problem = f"the limit of a run is {self._limits['artifacts']} files"
        elif sum(others) + size + file.size > self._limits["artifact_bytes"]:
            problem = f"the limit of a run is {self._limits['artifact_bytes']} bytes of files"
        else:
            return True
        if not count:
            self._versions[file.name] = file.signature
            self.over_limit[file.name] = problem
            self._report(file.name, f"{_display_name(file.name)} is not stored: {problem}.")
        return False

    def _refuse(self, file: files.ArtifactFile, reason: str) -> None:
        self._versions[file.name] = file.signature
        self.refused[file.name] = reason
        self._report(file.name, f"{_display_name(file.name)} is not stored: {reason}.")

    def _report(self, name: str, message: str) -> None:
        with self._report_lock:
            if name in self._reported or len(self._reported) > _MAX_REPORTED_NAMES:
                return
            self._reported.add(name)
            if len(self._reported) > _MAX_REPORTED_NAMES:
                message = "More artifacts are not stored; further names are omitted."
        self._events.put(
            encode.timestamp(time.time_ns()), [("log", encode.log("artifacts: " + message, "warning"))]
        )


def _display_name(name: str) -> str:
    return repr(name.encode("utf-8", "backslashreplace").decode()[:200])
