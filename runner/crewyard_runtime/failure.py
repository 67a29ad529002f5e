"""An exception of the crew's → reason and message of the failure. Called by `crew`."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType

MOST = 2048  # bytes of the message
_FRAMES = 6
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


def failure(reason: str, error: BaseException, app: str) -> dict[str, object]:
    """The child's last word. `exit` marks an end that a signal or the crew's own exit call explains."""
    if isinstance(error, SystemExit):
        text = (
            f"The crew called sys.exit({error.code!r}). Return from the entrypoint to succeed, "
            "raise an exception "
            "to fail."
        )
        text += _crew_frames(error, app)
    else:
        text = message(error, app)
    said: dict[str, object] = {"reason": reason, "message": _clip(text)}
    if not isinstance(error, Exception):
        said["exit"] = True
    return {"failure": said}


def message(error: BaseException, app: str) -> str:
    """The exception in one line, its notes and cause, then the crew's own frames, the innermost last."""
    lines = [_line(error)]
    lines += [str(note)[:300] for note in getattr(error, "__notes__", ())][:3]
    if error.__cause__ is not None:
        lines.append("caused by " + _line(error.__cause__))
    return "\n".join(lines) + _crew_frames(error, app)


def show(error: BaseException) -> None:
    """Prints the traceback as Python does, without the frames of ours that lead to the crew."""
    traceback.print_exception(type(error), error, _stripped(error.__traceback__), file=sys.stderr)


def raised_by_import(error: BaseException) -> bool:
    """Whether no frame but ours and the import machinery's stands between our import and the exception."""
    return _stripped(error.__traceback__) is None


def _crew_frames(error: BaseException, app: str) -> str:
    frames = traceback.extract_tb(_stripped(error.__traceback__))
    inside = app.rstrip("/") + "/"
    own = [one for one in frames if one.filename.startswith(inside) and "/site-packages/" not in one.filename]
    shown = own[-_FRAMES:] if own else list(frames)[-3:]
    if own and frames[-1] is not own[-1]:
        shown = [*shown, frames[-1]]
    text = ""
    for one in reversed(shown):
        frame = f'\n  File "{one.filename}", line {one.lineno}, in {one.name}'
        frame += f"\n    {one.line[:200]}" if one.line else ""
        if len(text) + len(frame) > MOST // 2:
            break
        text = frame + text
    return text


def _line(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # a __str__ that fails
        text = "<its text cannot be had>"
    return f"{type(error).__name__}: {text}"[: MOST // 3] if text else type(error).__name__


def _stripped(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not (name.startswith((_OURS, "<frozen importlib")) or name.endswith("/importlib/__init__.py")):
            return trace
        trace = trace.tb_next
    return None


def _clip(text: str) -> str:
    raw = text.encode("utf-8", "replace")
    return raw.decode() if len(raw) <= MOST else raw[: MOST - 3].decode("utf-8", "ignore") + "…"
