"""The termination message of a build container, which the controller reads. Called by build.__main__."""

import bisect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PATH = Path("/dev/termination-log")
_MAX_BYTES = 4096
_SHORTENED_KEYS = ("message", "hint")


def termination_message(result: Mapping[str, Any]) -> str:
    """Encode `result` as JSON of at most 4096 bytes; truncate the start of `log`, then `message`, `hint`."""
    message = dict(result)
    log = message.get("log")
    if isinstance(log, str) and not _fits(message):
        # Keep as much of the end as fits: the last lines matter most.
        start = bisect.bisect_left(
            range(len(log)), True, key=lambda start: _fits({**message, "log": f"…{log[start:]}"})
        )
        message["log"] = f"…{log[start:]}" if start < len(log) else ""
    for key in _SHORTENED_KEYS:
        text = message.get(key)
        if isinstance(text, str) and not _fits(message):
            # Keep as much of the start as fits; escaped characters take up to 12 bytes.
            length = bisect.bisect_left(
                range(len(text)), True, key=lambda count: not _fits({**message, key: f"{text[:count]}…"})
            )
            message[key] = f"{text[: length - 1]}…" if length > 1 else ""
    return _encode(message)


def write_termination(result: Mapping[str, Any], path: Path = PATH) -> None:
    """Write the termination message for the controller."""
    path.write_text(termination_message(result))


def _fits(result: Mapping[str, Any]) -> bool:
    return len(_encode(result)) <= _MAX_BYTES


def _encode(result: Mapping[str, Any]) -> str:
    return json.dumps(result, separators=(",", ":"), ensure_ascii=True)
