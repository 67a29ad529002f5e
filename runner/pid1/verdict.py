"""The outcome of a run. Pure; used by `work` and `shutdown`."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]

MESSAGE_BYTES = 2048
STOP, DEADLINE, QUESTION, BUDGET = "stop", "deadline", "question", "budget"
MEMORY, STORAGE, LATE = "memory", "storage", "late"
"""Causes for which the runner stops a crew; late: it has not exited after its result."""
_LIMIT_REASONS = {
    DEADLINE: "DeadlineExceeded",
    QUESTION: "InputTimeout",
    BUDGET: "BudgetExceeded",
    STORAGE: "StorageExceeded",
}
_REASONS_OF_CREWS = (
    "CrewError", "ImportError", "EntrypointNotFound", "ArtifactsLost", "InputRequired", "InputTimeout",
)  # fmt: skip


class RunVerdict:
    """Outcome succeeded, failed or stopped; reason and message only for a failure."""

    __slots__ = ("message", "outcome", "reason")

    def __init__(self, outcome: str, reason: str | None = None, message: str | None = None) -> None:
        self.outcome = outcome
        self.reason = reason
        self.message = clip(message, MESSAGE_BYTES) if message else message


def decide(
    status: int,
    final_report: dict[str, object] | None,
    cause: str | None,
    limit_message: str | None,
    oom: bool,
    memory_bytes: int | None,
) -> RunVerdict:
    """Return the verdict on a crew that has exited.

    `status` is the wait status of the child, `final_report` its last message. `cause` is why the runner
    stopped the crew: one of the causes above, or None; `limit_message` says which limit it reached then.
    `oom`: the kernel killed a process for lack of memory, of which the pod has `memory_bytes`.
    """
    by_signal = status & 0x7F
    if cause in (DEADLINE, QUESTION, BUDGET):
        return RunVerdict("failed", _LIMIT_REASONS[cause], limit_message)
    if final_report is not None and "result" in final_report:
        return RunVerdict("succeeded")
    if cause == STORAGE:
        return RunVerdict("failed", _LIMIT_REASONS[cause], limit_message)
    if cause == MEMORY or (oom and by_signal == signal.SIGKILL):
        return RunVerdict("failed", "OOMKilled", _memory_message(memory_bytes))
    failure = final_report.get("failure") if final_report is not None else None
    if cause == STOP and (not isinstance(failure, dict) or failure.get("exit")):
        return RunVerdict("stopped")
    if isinstance(failure, dict):
        return failed(failure, oom)
    if by_signal:
        return RunVerdict("failed", "CrewError", _killed(by_signal))
    return RunVerdict(
        "failed", "CrewError",
        f"The crew's process exited with exit code {status >> 8} before the entrypoint returned. Look for "
        "os._exit in the crew and its libraries: return from the entrypoint to succeed, raise an exception "
        "to fail.",
    )  # fmt: skip


def deadline_message(timeout: float) -> str:
    """Return the message of a run that reached its timeout."""
    return (
        f"The run was stopped at its timeout of {_duration(timeout)}. Raise `timeout` in the run or in "
        "the configuration file, or give the crew less work."
    )


def question_message(ask_seconds: float) -> str:
    """Return the message of a run whose question no one answered."""
    return (
        f"The crew asked a person, and no one answered within {_duration(ask_seconds)}. Start the run "
        "again and answer, or raise `spec.run.askTimeout` of the project."
    )


def _memory_message(memory_bytes: int | None) -> str:
    size = f" of {memory_bytes // (1 << 20)} MiB" if memory_bytes else ""
    return (
        f"The crew reached the memory limit{size} and was killed. Raise "
        "`spec.run.resources.limits.memory` of the project, or use less memory."
    )


def failed(failure: dict[str, object], oom: bool = False) -> RunVerdict:
    """Return the verdict on a failure that the crew's process has reported."""
    reason = failure.get("reason")
    message = str(failure.get("message") or "The crew failed without a message.")
    if oom:
        message = "The kernel also killed a process of the crew for lack of memory.\n" + message
    return RunVerdict("failed", str(reason) if reason in _REASONS_OF_CREWS else "CrewError", message)


def clip(text: str, max_bytes: int) -> str:
    """Return the last `max_bytes` bytes of UTF-8: the last lines of a traceback are the most specific."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= max_bytes:
        return raw.decode()
    return "…" + raw[-(max_bytes - 3) :].decode("utf-8", "ignore")


def _killed(number: int) -> str:
    from signal import Signals

    try:
        name = Signals(number).name
    except ValueError:
        name = f"signal {number}"
    hint = {
        signal.SIGKILL: "Neither the timeout nor the memory limit caused it: look for kill in the crew.",
        signal.SIGSEGV: "A native library crashed: see the last lines of the log and the version of the "
        "library.",
        signal.SIGABRT: "A native library aborted: see the last lines of the log.",
    }.get(number, "Look for the code in the crew or its libraries that sends it.")
    return f"The crew's process was killed by {name}. {hint}"


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole != seconds or whole < 60:
        return f"{seconds:g} s"
    parts = ((whole // 3600, "h"), (whole % 3600 // 60, "min"), (whole % 60, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)
