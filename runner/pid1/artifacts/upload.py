"""Stores the crew's artifacts, while it runs and at its end. A thread of its own, started by `work`."""

from __future__ import annotations

import threading
import time

from runner.pid1.api.client import Away, Facade, Lost
from runner.pid1.artifacts import files
from runner.pid1.artifacts.content import Changed
from runner.pid1.artifacts.transfer import Refused, transfer
from runner.pid1.artifacts.upload_pool import Lanes
from runner.pid1.deadline import Until
from runner.pid1.output import encode
from runner.pid1.output.event_queue import Events
from runner.pid1.process import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_REST = 9  # pauses are so many times as long as the work before them
_SAID = 100  # dropped names that are said one by one


class Upload(threading.Thread):
    """Uploads a file when nobody writes it and it is unchanged for a second; at the end all.

    Several are on their way at once. Read it once the thread has ended: `stored` by name (bytes, sha256),
    `over` what is above the run's limits and `refused` what could not be stored, with the reason; `away` why
    the rest could not be.
    """

    def __init__(
        self, connect: Callable[[], Facade], events: Events, until: Until, root: str,
        limits: dict[str, int], settle: float,
    ) -> None:  # fmt: skip
        super().__init__(name="upload", daemon=True)
        self._lanes = Lanes(connect)
        self._events = events
        self._until = until
        self._root = root
        self._limits = limits
        self._settle = settle
        self._seen: dict[str, tuple[files.Signature, float]] = {}
        self._versions: dict[str, files.Signature] = {}
        self._said: set[str] = set()
        self._saying = threading.Lock()
        self._ending = threading.Event()
        self._looked = 0.0  # seconds of work that the last look took
        self.stored: dict[str, tuple[int, str]] = {}
        self.refused: dict[str, str] = {}
        self.over: dict[str, str] = {}
        self.partial = False
        self.lost = False
        self.away = ""

    def run(self) -> None:
        """Scans until told to finish, then once more for good."""
        try:
            pause = self._settle
            while not self._ending.wait(pause):
                self._once(final=False)
                pause = max(self._settle, _REST * self._looked)
            while not self._once(final=True):
                if self._until.pause(self._settle):
                    raise Away("files are changing still")
        except Lost:
            self.lost = True
            signals.poke()
        except Away as error:
            self.away = str(error)
        except Exception as error:
            # Whatever it was: files that are not stored are said to be lost.
            self.away = f"{type(error).__name__}: {error}"

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
        begun = time.thread_time()
        found, dropped = files.scan(self._root)
        self._forget({file.name for file in found})
        for name, reason in dropped.items():
            self._say(name, f"{_shown(name)} is not stored: {reason}.")
        now = time.monotonic()
        fresh = [file for file in found if self._versions.get(file.name) != file.signature]
        if not final:
            fresh = [file for file in fresh if self._settled(file, now)]
            held = files.being_written() if fresh else set()
            fresh = [file for file in fresh if (file.device, file.signature[0]) not in held]
        self._looked = time.thread_time() - begun
        changed: list[str] = []

        def one(facade: Facade, file: files.Found) -> None:
            if not final and self._ending.is_set():
                return  # the final scan takes the rest, with the right mark
            try:
                self._store(facade, file)
            except Changed:
                changed.append(file.name)
            except Refused as reason:
                self._refuse(file, str(reason))
            except OSError as error:
                if final:
                    self._refuse(file, f"it cannot be read ({error.strerror})")

        self._lanes.send(fresh, self._fits, one)
        return not changed

    def _forget(self, found: set[str]) -> None:
        """A crew may make and remove files for hours: of those that are gone, only the stored are kept."""
        for known in (self._seen, self._versions, self.over):
            for name in [name for name in known if name not in found and name not in self.stored]:
                del known[name]

    def _settled(self, file: files.Found, now: float) -> bool:
        signature, since = self._seen.get(file.name, (None, now))
        if signature != file.signature:
            self._seen[file.name] = (file.signature, now)
            return False
        return now - since >= self._settle

    def _store(self, facade: Facade, file: files.Found) -> None:
        sha256 = transfer(facade, self._root, file, self.partial, self._until.pause)
        self._versions[file.name] = file.signature
        self._seen.pop(file.name, None)
        self.refused.pop(file.name, None)
        self.over.pop(file.name, None)
        self.stored[file.name] = (file.size, sha256)

    def _fits(self, file: files.Found, count: int, size: int) -> bool:
        """Whether there is place for it beside `count` files of `size` bytes that are just being sent."""
        # A copy, in one step: the other lanes put into it what they have stored.
        others = [stored for name, (stored, _) in self.stored.copy().items() if name != file.name]
        if len(others) + count >= self._limits["artifacts"]:
            trouble = f"a run keeps {self._limits['artifacts']} files"
        elif sum(others) + size + file.size > self._limits["artifact_bytes"]:
            trouble = f"a run keeps {self._limits['artifact_bytes']} bytes of files"
        else:
            return True
        if not count:
            self._versions[file.name] = file.signature
            self.over[file.name] = trouble
            self._say(file.name, f"{_shown(file.name)} is not stored: {trouble}.")
        return False

    def _refuse(self, file: files.Found, reason: str) -> None:
        self._versions[file.name] = file.signature
        self.refused[file.name] = reason
        self._say(file.name, f"{_shown(file.name)} is not stored: {reason}.")

    def _say(self, name: str, message: str) -> None:
        with self._saying:
            if name in self._said or len(self._said) > _SAID:
                return
            self._said.add(name)
            if len(self._said) > _SAID:
                message = "More artifacts are not stored; they are not named here."
        self._events.put(
            encode.stamp(time.time_ns()), [("log", encode.log("artifacts: " + message, "warning"))]
        )


def _shown(name: str) -> str:
    return repr(name.encode("utf-8", "backslashreplace").decode()[:200])
