"""Converts an exception of the crew to reason and message of the failure. Called by `crew`."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType

from .hint import hint

MAX_FAILURE_BYTES = 2048
_MAX_FRAMES = 6
_MAX_MEMBERS = 3
# What parsers of a command line exit with if it lacks an argument.
_USAGE_ERROR = 2
_PARSERS = frozenset({"argparse", "click", "typer"})
_RUNTIME_DIRECTORY = os.path.dirname(os.path.abspath(__file__)) + os.sep


def failure(reason: str, error: BaseException, app: str) -> dict[str, object]:
    """Return the final report of a failure. `exit` marks an end by a signal or a call of sys.exit."""
    if isinstance(error, SystemExit):
        text = (
            f"The crew called sys.exit({error.code!r}). Return from the entrypoint to succeed, "
            "raise an exception to fail."
        )
        if error.code == _USAGE_ERROR and _PARSERS & modules_of(error.__traceback__):
            text += "\nThe log says which arguments it expects; give them as a list: args of the run's input."
        text += _crew_frames(error, app)
    else:
        text = message(error, app, reason)
    report: dict[str, object] = {"reason": reason, "message": _clip(text)}
    if not isinstance(error, Exception):
        report["exit"] = True
    return {"failure": report}


def message(error: BaseException, app: str, reason: str = "") -> str:
    """Return the exception in one line, its notes, members, cause and next step, then the crew's frames.

    The innermost frame comes last. Omits the name of the exception if it is also the reason, which precedes
    the message wherever it is shown.
    """
    lines = [_line(error).removeprefix(f"{reason}: ")]
    lines += [str(note)[:300] for note in getattr(error, "__notes__", ())][:3]
    lines += ["with " + _line(member)[:300] for member in _members(error)]
    if error.__cause__ is not None:
        lines.append("caused by " + _line(error.__cause__))
    if next_step := hint(error, app):
        lines.append(next_step)
    return "\n".join(lines) + _crew_frames(error, app)


def print_traceback(error: BaseException) -> None:
    """Print the traceback as Python does, without the runtime's frames before the crew. Never raises."""
    frames = _without_runtime_frames(error.__traceback__)
    for stream in (sys.stderr, sys.__stderr__):
        try:
            traceback.print_exception(type(error), error, frames, file=stream)
        except Exception:  # the crew may have closed or replaced it
            continue
        return


def raised_by_import(error: BaseException) -> bool:
    """Return whether the exception comes from our import itself, not from code of the imported module."""
    return _without_runtime_frames(error.__traceback__) is None


def modules_of(frames: TracebackType | None) -> set[str]:
    """Return the packages whose functions were executing."""
    named = (str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(frames))
    return {name.partition(".")[0] for name in named}


def _crew_frames(error: BaseException, app: str) -> str:
    frames = traceback.extract_tb(_without_runtime_frames(error.__traceback__))
    inside = app.rstrip("/") + "/"
    crew_frames = [
        item for item in frames if item.filename.startswith(inside) and "/site-packages/" not in item.filename
    ]
    selected = crew_frames[-_MAX_FRAMES:] if crew_frames else list(frames)[-3:]
    if crew_frames and frames[-1] is not crew_frames[-1]:
        selected = [*selected, frames[-1]]
    text = ""
    for item in reversed(selected):
        frame = f'\n  File "{item.filename}", line {item.lineno}, in {item.name}'
        frame += f"\n    {item.line[:200]}" if item.line else ""
        if len(text) + len(frame) > MAX_FAILURE_BYTES // 2:
            break
        text = frame + text
    return text


def _line(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # a __str__ that fails
        text = "<str() of the exception failed>"
    return f"{type(error).__name__}: {text}"[: MAX_FAILURE_BYTES // 3] if text else type(error).__name__


def _members(error: BaseException) -> list[BaseException]:
    """Return the first exceptions of a group, such as of asyncio.TaskGroup, and of the groups in it."""
    members: list[BaseException] = []
    pending = [*error.exceptions] if isinstance(error, BaseExceptionGroup) else []
    while pending and len(members) < _MAX_MEMBERS:
        item = pending.pop(0)
        if isinstance(item, BaseExceptionGroup):
            pending[:0] = item.exceptions
        else:
            members.append(item)
    return members


def _without_runtime_frames(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not (
            name.startswith((_RUNTIME_DIRECTORY, "<frozen importlib", "<frozen runpy"))
            or name.endswith("/importlib/__init__.py")
        ):
            return trace
        trace = trace.tb_next
    return None


def _clip(text: str) -> str:
    raw = text.encode("utf-8", "replace")
    return (
        raw.decode()
        if len(raw) <= MAX_FAILURE_BYTES
        else raw[: MAX_FAILURE_BYTES - 3].decode("utf-8", "ignore") + "…"
    )
