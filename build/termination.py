"""The last words of a build container, which the controller reads. Called by build.__main__."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PATH = Path("/dev/termination-log")
_BYTES = 4096
_SHORTENED = ("message", "hint")


def termination_message(words: Mapping[str, Any]) -> str:
    """`words` as JSON of at most 4096 bytes; `message`, then `hint`, give way."""
    kept = dict(words)
    for key in _SHORTENED:
        over = len(_text(kept).encode()) - _BYTES
        if over <= 0:
            break
        if isinstance(kept.get(key), str):
            kept[key] = _cut(kept[key], over)
    return _text(kept)


def write_termination(words: Mapping[str, Any], path: Path = PATH) -> None:
    """Leaves `words` for the controller."""
    path.write_text(termination_message(words))


def _cut(text: str, over: int) -> str:
    # Escapes make a letter up to six bytes long: shorten until what is written fits.
    room = len(json.dumps(text)) - over - 3
    while text and len(json.dumps(text)) > max(room, 2):
        text = text[: -max(1, (len(json.dumps(text)) - room) // 6)]
    return f"{text}…" if room > 8 else ""


def _text(words: Mapping[str, Any]) -> str:
    return json.dumps(words, separators=(",", ":"), ensure_ascii=True)
