"""How a run ended, from what is known of it. Pure; used by `work`."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]

MESSAGE_BYTES = 2048


class Verdict:
    """outcome succeeded | failed | stopped; reason and message only of a failure."""

    __slots__ = ("message", "outcome", "reason")

    def __init__(self, outcome: str, reason: str | None = None, message: str | None = None) -> None:
        self.outcome = outcome
        self.reason = reason
        self.message = clip(message, MESSAGE_BYTES) if message else message


def decide(
    status: int,
    end: dict[str, object] | None,
    cause: str | None,
    oom: bool,
    timeout: float,
    limit: int | None,
    full: str | None = None,
) -> Verdict:
    """`status` as of waitpid; `end` the child's last word; `cause` why the runner itself stopped the crew
    (`stop`, `deadline`, `memory`, `storage` or None); `oom` whether the kernel killed a process for memory;
    `full` what to say of the disk where that was the cause."""
    by_signal = status & 0x7F
    if cause == "deadline":
        return Verdict(
            "failed", "DeadlineExceeded",
            f"The run was stopped after {_span(timeout)}, its timeout. Raise `timeout` in the run or in the "
            "configuration file, or give the crew less to do.",
        )  # fmt: skip
    if end is not None and "result" in end:
        return Verdict("succeeded")
    if cause == "storage":
        return Verdict("failed", "StorageExceeded", full)
    if cause == "memory" or (oom and by_signal == signal.SIGKILL):
        size = f" of {limit // (1 << 20)} MiB" if limit else ""
        return Verdict(
            "failed", "OOMKilled",
            f"The crew used up the memory limit{size} and was killed. Raise "
            "`run.resources.limits.memory` of the "
            "project, or hold less in memory at once.",
        )  # fmt: skip
    failure = end.get("failure") if end is not None else None
    if isinstance(failure, dict):
        if cause == "stop" and failure.get("exit"):
            return Verdict("stopped")
        reason = failure.get("reason")
        known = (
            reason
            if reason in ("CrewError", "ImportError", "EntrypointNotFound", "ArtifactsLost")
            else "CrewError"
        )
        message = str(failure.get("message") or "The crew failed without a message.")
        if oom:
            message = "A process of the crew was killed for memory meanwhile.\n" + message
        return Verdict("failed", known, message)
    if cause == "stop":
        return Verdict("stopped")
    if by_signal:
        return Verdict("failed", "CrewError", _killed(by_signal))
    return Verdict(
        "failed", "CrewError",
        f"The crew's process ended with exit code {status >> 8} before the entrypoint returned. "
        "Look for os._exit "
        "in the crew and its libraries: return from the entrypoint to succeed, raise an exception to fail.",
    )  # fmt: skip


def clip(text: str, most: int) -> str:
    """At most `most` bytes of UTF-8, the end kept, since a traceback's last lines say the most."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= most:
        return raw.decode()
    return "…" + raw[-(most - 3) :].decode("utf-8", "ignore")


def _killed(number: int) -> str:
    from signal import Signals

    try:
        name = Signals(number).name
    except ValueError:
        name = f"signal {number}"
    hint = {
        signal.SIGKILL: "Neither the timeout nor the memory limit did it: look for kill in the crew itself.",
        signal.SIGSEGV: "A native library crashed: the log's last lines and that library's "
        "version tell more.",
        signal.SIGABRT: "A native library gave up: the log's last lines tell more.",
    }.get(number, "Look for what sends it in the crew and its libraries.")
    return f"The crew's process was killed by {name}. {hint}"


def _span(seconds: float) -> str:
    whole = int(seconds)
    if whole != seconds or whole < 60:
        return f"{seconds:g} s"
    parts = ((whole // 3600, "h"), (whole % 3600 // 60, "min"), (whole % 60, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)
