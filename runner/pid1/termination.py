"""The pod's last word to Kubernetes, for when the facade cannot be reached. Called by `main` and `finish`."""

from __future__ import annotations

from runner.pid1.api.fast_json import dumps

MOST = 4096


def compose(outcome: str | None, reason: str | None, message: str | None, reported: bool) -> bytes:
    """The message as JSON of at most 4096 bytes. Pure."""
    text = (message or "").encode("utf-8", "replace").decode()
    while True:
        value = {"outcome": outcome, "reason": reason, "message": text or None, "reported": reported}
        written = dumps(value, ascii_only=False).encode()
        if len(written) <= MOST:
            return written
        text = text[len(text) // 8 + 1 :]  # the end says the most


def write(path: str, message: bytes) -> None:
    """Writes it as the whole content; a pod without such a file goes without."""
    try:
        with open(path, "wb") as file:
            file.write(message)
    except OSError:
        pass
