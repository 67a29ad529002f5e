"""The pod's termination message, a fallback if the API is unavailable. Called by `main` and `shutdown`."""

from __future__ import annotations

from runner.pid1.api.fast_json import dumps

MAX_MESSAGE_BYTES = 4096


def compose(outcome: str | None, reason: str | None, message: str | None, reported: bool) -> bytes:
    """Return the message as JSON of at most 4096 bytes, keeping the end of the text. Pure."""
    text = (message or "").encode("utf-8", "replace").decode()
    while True:
        value = {"outcome": outcome, "reason": reason, "message": text or None, "reported": reported}
        written = dumps(value, ascii_only=False).encode()
        if len(written) <= MAX_MESSAGE_BYTES:
            return written
        text = text[len(text) // 8 + 1 :]  # keep the end, which is the most specific


def write(path: str, message: bytes) -> None:
    """Write the message as the only content of the file; ignore a pod without such a file."""
    try:
        with open(path, "wb") as file:
            file.write(message)
    except OSError:
        pass
