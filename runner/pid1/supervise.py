"""Supervises the crew from the grant to its exit, then shuts down. Called by `main`."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import os
import sys
import threading
import time

from runner.pid1.api.client import RunAPIClient, now
from runner.pid1.artifacts.outside import WrittenFiles
from runner.pid1.artifacts.upload import ArtifactUploader
from runner.pid1.budget import RunBudget
from runner.pid1.claim import ClaimGrant
from runner.pid1.deadline import Deadline
from runner.pid1.output import encode
from runner.pid1.output.capture import OutputCapture
from runner.pid1.output.echo import Echo
from runner.pid1.output.event_queue import EventQueue
from runner.pid1.output.mask import SecretMask
from runner.pid1.output.sender import EventSender
from runner.pid1.process import memory, reaper, signals
from runner.pid1.process.disk_usage import DiskWatcher, disk_watcher
from runner.pid1.process.launch import CrewProcess
from runner.pid1.questions import Questions, WaitingTime
from runner.pid1.settings import RunnerSettings
from runner.pid1.shutdown import EXIT_REFUSED, Shutdown
from runner.pid1.verdict import (
    BUDGET,
    DEADLINE,
    LATE,
    MEMORY,
    QUESTION,
    STOP,
    STORAGE,
    RunVerdict,
    deadline_message,
    decide,
    question_message,
)

EXIT_GRACE_SECONDS = 30.0  # from the return of the entrypoint to the exit of the process
_KILL_TIMEOUT_SECONDS = 2.0
_DRAIN_SECONDS = 5.0
_RESULT_RESERVE_SECONDS = 3.0  # reserved for the result at the end of the artifacts' deadline


class CrewSupervisor:
    """Supervisor of one run, from the grant to the exit code."""

    def __init__(
        self,
        settings: RunnerSettings,
        nonce: str,
        client: RunAPIClient,
        child: CrewProcess,
        granted: ClaimGrant,
        memory_: memory.CgroupMemory,
        started: float,
    ) -> None:
        self._settings = settings
        self._nonce = nonce
        self._child = child
        self._granted = granted
        self._memory = memory_
        self._deadline = Deadline()
        self._artifacts_deadline = Deadline()
        self._cause: str | None = None
        self._kill_at = float("inf")
        limits = granted.limits
        self._events = EventQueue()
        # The connection of the claim is open, so the first event waits for no handshake.
        self._sender = EventSender(client, self._events, self._deadline)
        echo = Echo(sys.stdout.fileno())
        mask = SecretMask(settings.secrets, os.environ)
        self._budget = RunBudget(granted.budget)
        self._waiting = WaitingTime(granted.ask_seconds)
        self._questions = Questions(
            lambda: RunAPIClient(settings, nonce), self._events, mask, child.grant, self._waiting,
            limits["event_bytes"] - 1024,
        )  # fmt: skip
        self._capture = OutputCapture(
            child, self._events, echo, mask, limits["log_lines"], limits["event_bytes"],
            # Of a run that cannot ask, the descriptor of the answers is closed, and may be another file's.
            self._questions.handle if granted.ask_seconds > 0 else lambda message: None, self._count_usage,
        )  # fmt: skip
        self._upload = ArtifactUploader(
            lambda: RunAPIClient(settings, nonce), self._events, self._artifacts_deadline,
            os.path.join(settings.app, "artifacts"), limits, settings.scan_seconds,
            WrittenFiles(settings.app, started, granted.artifacts),
        )  # fmt: skip
        self._storage: DiskWatcher = disk_watcher(settings, os.environ, started)
        self._storage_message: str | None = None
        self._stop_requested = False

    def run(self, stopped: bool) -> int:
        """Return the exit code of the pod. `stopped`: the pod was stopped before the crew got its task."""
        for worker in (self._capture, self._sender, self._upload, self._storage):
            worker.start()
        if stopped:
            self._stop_requested = True
            self._stop(STOP)
        status = self._watch()
        if status is None:
            reaper.kill_all(self._child.pid, _KILL_TIMEOUT_SECONDS)
            return EXIT_REFUSED
        duration_ms = max(0, round((now() - self._granted.granted_at) * 1000))
        oom = self._memory.oom_killed()
        self._storage.stop()
        reaper.kill_all(self._child.pid, _KILL_TIMEOUT_SECONDS)
        self._capture.stop_by = now() + _DRAIN_SECONDS

        def verdict(report: dict[str, object] | None) -> RunVerdict:
            # All usage is counted by now, also that of a crew which has exited before it could be stopped.
            over_budget = self._budget.exceeded is not None and self._cause in (None, LATE)
            cause = BUDGET if over_budget else self._cause
            return decide(status, report, cause, self._limit_message(cause), oom, self._memory.limit)

        self._limit_time(self._settings.report_seconds)
        if self._stop_requested:
            self._limit_time(self._settings.flush_grace)
        shutdown = Shutdown(
            RunAPIClient(self._settings, self._nonce), self._capture, self._events, self._sender,
            self._upload, self._deadline, verdict, duration_ms, self._granted.limits["output_bytes"],
            self._settings.termination_log, os.WIFSIGNALED(status),
        )  # fmt: skip
        shutdown.start()
        while shutdown.is_alive():
            number = signals.wait(0.5)
            if number in signals.STOP:
                self._limit_time(self._settings.flush_grace)
            elif number == signals.WAKE:
                shutdown.join(0.02)  # the thread wakes the main thread as its last step
        return shutdown.code

    def _watch(self) -> int | None:
        """Return the wait status of the crew's process; None if this pod no longer holds the run."""
        check_at = 0.0
        while True:
            status = reaper.wait_status(self._child.pid)
            if status is not None:
                return status
            if self._sender.lost or self._upload.lost or self._questions.lost:
                return None
            now_ = now()
            deadline = self._granted.granted_at + self._granted.timeout + self._waiting.total(now_)
            if self._cause is None:
                returned = self._capture.final_report is not None
                if now_ >= deadline:
                    self._stop(LATE if returned else DEADLINE)
                elif self._questions.expired and not returned:
                    self._stop(QUESTION)
                elif not returned and self._exceeds_budget(now_):
                    self._stop(BUDGET)
                elif returned and now_ >= self._capture.final_report_at + EXIT_GRACE_SECONDS:
                    self._stop(LATE)
            if now_ >= self._kill_at:
                reaper.signal_group(self._child.pid, signal.SIGKILL)
                self._kill_at = now_ + 1.0
            if self._storage.exceeded and self._storage_message is None:
                self._storage_message = self._storage.exceeded
                self._kill(STORAGE)
            if now_ >= check_at:
                used = self._memory.used()
                check_at = now_ + memory.next_check_seconds(used, self._memory.limit)
                if memory.exceeds_limit(used, self._memory.limit):
                    self._kill(MEMORY)
                    check_at = now_ + 0.05
            # A deadline moves on while a question is open, so it is computed again.
            wake = min(check_at, self._kill_at)
            if self._cause is None:
                wake = min(wake, deadline, now_ + self._budget.seconds_to_change(self._elapsed(now_)))
            if signals.wait(wake - now_) in signals.STOP:
                self._stop_requested = True
                if self._cause in (None, LATE):
                    self._stop(STOP)

    def _elapsed(self, at: float) -> float:
        return at - self._granted.granted_at

    def _count_usage(self, model: str, prompt: int, completion: int) -> None:
        """Count the tokens of a model call; called by the capture."""
        self._warn_of_budget(self._budget.count(model, prompt, completion, self._elapsed(now())))
        if self._budget.exceeded is not None:
            signals.wake_main_thread()

    def _exceeds_budget(self, at: float) -> bool:
        if warning := self._budget.check(self._elapsed(at)):
            # A thread of its own, since a full queue blocks it.
            threading.Thread(
                target=self._warn_of_budget, args=(warning,), name="warning", daemon=True
            ).start()
        return self._budget.exceeded is not None

    def _warn_of_budget(self, warning: dict[str, object] | None) -> None:
        if warning is not None:
            self._events.put(encode.timestamp(time.time_ns()), [("budget.warning", encode.data(warning))])

    def _stop(self, cause: str) -> None:
        """Send SIGTERM to the crew's process group; SIGKILL follows after the grace period."""
        self._cause = cause
        self._upload.partial = self._upload.partial or cause != LATE
        self._kill_at = now() + self._settings.stop_grace
        reaper.signal_group(self._child.pid, signal.SIGTERM)

    def _kill(self, cause: str) -> None:
        """Kill the crew's process group immediately, and again every second until it is dead."""
        self._cause = self._cause or cause
        self._upload.partial = True
        self._kill_at = now() + 1.0
        reaper.signal_group(self._child.pid, signal.SIGKILL)

    def _limit_message(self, cause: str | None) -> str | None:
        """Return what the run's error says of the limit for which the crew was stopped."""
        return {
            DEADLINE: deadline_message(self._granted.timeout),
            QUESTION: question_message(self._granted.ask_seconds),
            BUDGET: self._budget.exceeded,
            STORAGE: self._storage_message,
        }.get(cause or "")

    def _limit_time(self, seconds: float) -> None:
        """Limit the remaining work to `seconds`; the artifacts must finish a little earlier."""
        self._deadline.bring_forward(now() + seconds)
        self._artifacts_deadline.bring_forward(now() + seconds - min(seconds * 0.3, _RESULT_RESERVE_SECONDS))
