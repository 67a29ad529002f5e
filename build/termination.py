"""The last words of a build container, which the controller reads. Called by build.__main__."""

import bisect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PATH = Path("/dev/termination-log")
_BYTES = 4096
_SHORTENED = ("message", "hint")


def termination_message(words: Mapping[str, Any]) -> str:
    """`words` as JSON of at most 4096 bytes; the beginning of `log`, then `message`, then `hint` give way."""
    kept = dict(words)
    log = kept.get("log")
    if isinstance(log, str) and not _fits(kept):
        # As much of the end as there is room for: the last lines tell most.
        start = bisect.bisect_left(
            range(len(log)), True, key=lambda start: _fits({**kept, "log": f"…{log[start:]}"})
        )
        kept["log"] = f"…{log[start:]}" if start < len(log) else ""
    for key in _SHORTENED:
        text = kept.get(key)
        if isinstance(text, str) and not _fits(kept):
            # As much of the beginning as there is room for; escapes make letters up to twelve bytes long.
            length = bisect.bisect_left(
                range(len(text)), True, key=lambda count: not _fits({**kept, key: f"{text[:count]}…"})
            )
            kept[key] = f"{text[: length - 1]}…" if length > 1 else ""
    return _text(kept)


def write_termination(words: Mapping[str, Any], path: Path = PATH) -> None:
    """Leaves `words` for the controller."""
    path.write_text(termination_message(words))


def _fits(words: Mapping[str, Any]) -> bool:
    return len(_text(words)) <= _BYTES


def _text(words: Mapping[str, Any]) -> str:
    return json.dumps(words, separators=(",", ":"), ensure_ascii=True)
