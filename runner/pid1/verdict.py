"""The outcome of a run. Pure; used by `work` and `shutdown`."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]

MESSAGE_BYTES = 2048
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
    oom: bool,
    timeout: float,
    limit: int | None,
    storage_message: str | None = None,
    ask_seconds: float = 0.0,
    budget_message: str | None = None,
) -> RunVerdict:
    """Return the verdict on a crew that has exited.

    `status` is the wait status of the child, `final_report` its last message, `cause` why the runner stopped
    the crew (`stop`, `deadline`, `question`, `budget`, `memory`, `storage`, `late` or None), `oom` whether
    the kernel killed a process for lack of memory, `storage_message` the message for cause `storage`,
    `ask_seconds` the limit for cause `question`, `budget_message` the message for cause `budget`.
    """
    by_signal = status & 0x7F
    if cause == "deadline":
        return RunVerdict(
            "failed", "DeadlineExceeded",
            f"The run was stopped at its timeout of {_duration(timeout)}. Raise `timeout` in the run or in "
            "the configuration file, or give the crew less work.",
        )  # fmt: skip
    if cause == "question":
        return RunVerdict(
            "failed", "InputTimeout",
            f"The crew asked a person, and no one answered within {_duration(ask_seconds)}. Start the run "
            "again and answer, or raise `spec.run.askTimeout` of the project.",
        )  # fmt: skip
    if cause == "budget":
        return RunVerdict("failed", "BudgetExceeded", budget_message)
    if final_report is not None and "result" in final_report:
        return RunVerdict("succeeded")
    if cause == "storage":
        return RunVerdict("failed", "StorageExceeded", storage_message)
    if cause == "memory" or (oom and by_signal == signal.SIGKILL):
        size = f" of {limit // (1 << 20)} MiB" if limit else ""
        return RunVerdict(
            "failed", "OOMKilled",
            f"The crew reached the memory limit{size} and was killed. Raise "
            "`spec.run.resources.limits.memory` of the project, or use less memory.",
        )  # fmt: skip
    failure = final_report.get("failure") if final_report is not None else None
    if isinstance(failure, dict):
        if cause == "stop" and failure.get("exit"):
            return RunVerdict("stopped")
        reason = failure.get("reason")
        accepted = reason if reason in _REASONS_OF_CREWS else "CrewError"
        message = str(failure.get("message") or "The crew failed without a message.")
        if oom:
            message = "The kernel also killed a process of the crew for lack of memory.\n" + message
        return RunVerdict("failed", accepted, message)
    if cause == "stop":
        return RunVerdict("stopped")
    if by_signal:
        return RunVerdict("failed", "CrewError", _killed(by_signal))
    return RunVerdict(
        "failed", "CrewError",
        f"The crew's process exited with exit code {status >> 8} before the entrypoint returned. Look for "
        "os._exit in the crew and its libraries: return from the entrypoint to succeed, raise an exception "
        "to fail.",
    )  # fmt: skip


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
