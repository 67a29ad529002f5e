"""The time between the grant and the crew's death: watches all that ends it. Called by `main`."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import os
import sys

from runner.pid1.api.client import Facade, now
from runner.pid1.artifacts.upload import Upload
from runner.pid1.claim import Granted
from runner.pid1.deadline import Until
from runner.pid1.output.capture import Intake
from runner.pid1.output.echo import Echo
from runner.pid1.output.event_queue import Events
from runner.pid1.output.mask import Mask
from runner.pid1.output.sender import Sender
from runner.pid1.process import memory, reaper, signals
from runner.pid1.process.disk_usage import Storage, watch
from runner.pid1.process.launch import Child
from runner.pid1.settings import Settings
from runner.pid1.shutdown import REFUSED, Finish
from runner.pid1.verdict import Verdict, decide

AFTER_RESULT = 30.0  # seconds a crew's process may take to end once its entrypoint has returned
_CLEAR = 2.0
_DRAIN = 5.0
_RESULT_LEAST = 3.0  # seconds that are kept back from the artifacts for the result


class Work:
    """One run of the crew, from the grant to the exit code."""

    def __init__(
        self, settings: Settings, nonce: str, child: Child, granted: Granted, memory_: memory.Memory
    ) -> None:
        self._settings = settings
        self._nonce = nonce
        self._child = child
        self._granted = granted
        self._memory = memory_
        self._until = Until()
        self._files_until = Until()
        self._cause: str | None = None
        self._kill_at = float("inf")
        limits = granted.limits
        self._events = Events()
        self._sender = Sender(Facade(settings, nonce), self._events, self._until)
        echo = Echo(sys.stdout.fileno())
        mask = Mask(settings.secrets, os.environ)
        self._intake = Intake(child, self._events, echo, mask, limits["log_lines"], limits["event_bytes"])
        self._upload = Upload(
            lambda: Facade(settings, nonce), self._events, self._files_until,
            os.path.join(settings.app, "artifacts"), limits, settings.scan_seconds,
        )  # fmt: skip
        self._storage: Storage = watch(settings, os.environ)
        self._full: str | None = None
        self._asked = False

    def run(self, stopped: bool) -> int:
        """The pod's exit code. `stopped`: the pod was asked to stop before the crew was told to start."""
        for worker in (self._intake, self._sender, self._upload, self._storage):
            worker.start()
        if stopped:
            self._asked = True
            self._stop("stop")
        status = self._watch()
        if status is None:
            reaper.clear(self._child.pid, _CLEAR)
            return REFUSED
        duration_ms = max(0, round((now() - self._granted.at) * 1000))
        oom = self._memory.killed()
        self._storage.end()
        self._upload.partial = self._upload.partial or os.WIFSIGNALED(status)
        reaper.clear(self._child.pid, _CLEAR)
        self._intake.stop_by = now() + _DRAIN

        def verdict(end: dict[str, object] | None) -> Verdict:
            return decide(
                status, end, self._cause, oom, self._granted.timeout, self._memory.limit, self._full
            )

        self._bound(self._settings.report_seconds)
        if self._asked:
            self._bound(self._settings.flush_grace)
        finish = Finish(
            Facade(self._settings, self._nonce), self._intake, self._events, self._sender, self._upload,
            self._until, verdict, duration_ms, self._granted.limits["output_bytes"],
            self._settings.termination_log,
        )  # fmt: skip
        finish.start()
        while finish.is_alive():
            number = signals.wait(0.5)
            if number in signals.STOP:
                self._bound(self._settings.flush_grace)
            elif number == signals.POKE:
                finish.join(0.02)  # it pokes as its last act
        return finish.code

    def _watch(self) -> int | None:
        """The wait status of the crew's process; None when this pod no longer holds the run."""
        deadline = self._granted.at + self._granted.timeout
        look_at = 0.0
        while True:
            status = reaper.ended(self._child.pid)
            if status is not None:
                return status
            if self._sender.lost or self._upload.lost:
                return None
            time = now()
            if self._cause is None:
                returned = self._intake.end is not None
                if time >= deadline:
                    self._stop("late" if returned else "deadline")
                elif returned and time >= self._intake.end_at + AFTER_RESULT:
                    self._stop("late")
            if time >= self._kill_at:
                reaper.ask(self._child.pid, signal.SIGKILL)
                self._kill_at = time + 1.0
            if self._storage.exceeded and self._full is None:
                self._full = self._storage.exceeded
                self._kill("storage")
            if time >= look_at:
                used = self._memory.used()
                look_at = time + memory.next_look(used, self._memory.limit)
                if memory.over(used, self._memory.limit):
                    self._kill("memory")
                    look_at = time + 0.05
            wake = min(look_at, self._kill_at, deadline if self._cause is None else look_at)
            if signals.wait(wake - time) in signals.STOP:
                self._asked = True
                if self._cause in (None, "late"):
                    self._stop("stop")

    def _stop(self, cause: str) -> None:
        """Asks the crew's group to end; after the grace it is killed."""
        self._cause = cause
        self._upload.partial = self._upload.partial or cause != "late"
        self._kill_at = now() + self._settings.stop_grace
        reaper.ask(self._child.pid, signal.SIGTERM)

    def _kill(self, cause: str) -> None:
        """Kills the crew's group at once, again each second until it is dead."""
        self._cause = self._cause or cause
        self._upload.partial = True
        self._kill_at = now() + 1.0
        reaper.ask(self._child.pid, signal.SIGKILL)

    def _bound(self, seconds: float) -> None:
        """What is left to do must be done within `seconds`, the artifacts a little earlier."""
        self._until.by(now() + seconds)
        self._files_until.by(now() + seconds - min(seconds * 0.3, _RESULT_LEAST))
