"""The build log: to stdout, and in numbered chunks to the API. Used by every step of a build pod.

An unavailable API never fails or delays a build: unsent lines wait in a bounded buffer that drops the oldest
ones.
"""

import http.client
import json
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TextIO

from build.api_client import InternalApiClient
from build.errors import is_temporary

_BUFFER_BYTES = 1 << 20
_CHUNK_BYTES = 64 << 10
_GATHER_SECONDS = 0.05
_LINE_LETTERS = 4096
_LAST_LINES = 20
_LONGEST_PAUSE = 5.0


class BuildLog:
    """Thread-safe build log. Without `send` it only writes to `out`."""

    def __init__(self, send: Callable[[int, str], bool] | None = None, out: TextIO = sys.stdout) -> None:
        self._send, self._out = send, out
        self._lines: deque[str] = deque()
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._size = self._dropped = 0
        self._ready = threading.Condition()
        self._closing = False
        self._sender: threading.Thread | None = None

    def line(self, text: str) -> None:
        """Log one line; control characters are replaced, long lines truncated."""
        clean = "".join(c if c.isprintable() else "\ufffd" for c in text.rstrip("\n"))[:_LINE_LETTERS]
        print(clean, file=self._out, flush=True)
        self._last.append(clean)
        if self._send is None:
            return
        with self._ready:
            self._lines.append(f"{clean}\n")
            self._size += len(clean) + 1
            while self._size > _BUFFER_BYTES:
                self._size -= len(self._lines.popleft())
                self._dropped += 1
            if self._sender is None and not self._closing:
                self._sender = threading.Thread(target=self._run, daemon=True, name="logs")
                self._sender.start()
            self._ready.notify()

    def last(self) -> str:
        """Return the last lines, for the termination message of a failure."""
        return "\n".join(self._last)

    def close(self, timeout: float = 3.0) -> None:
        """Send the remaining lines, for at most `timeout` seconds; another call goes on with them."""
        with self._ready:
            self._closing = True
            self._ready.notify()
        if self._sender is not None:
            self._sender.join(timeout)

    def _run(self) -> None:
        assert self._send is not None
        number = 1
        while True:
            with self._ready:
                while not self._lines and not self._closing:
                    self._ready.wait()
                if not self._lines:
                    return
                if not self._closing:
                    self._ready.wait(_GATHER_SECONDS)  # batch lines, which come in bursts
                text = self._take()
            pause = 0.1
            while not self._send(number, text):
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            number += 1

    def _take(self) -> str:
        parts: list[str] = []
        if self._dropped:
            parts.append(f"[{self._dropped} lines were lost while the API was unavailable]\n")
            self._dropped = 0
        size = 0
        while self._lines and size < _CHUNK_BYTES:
            line = self._lines.popleft()
            self._size -= len(line)
            size += len(line)
            parts.append(line)
        return "".join(parts)


def api_sender(
    api: InternalApiClient, deployment: str, pod: str, container: str
) -> Callable[[int, str], bool]:
    """Return a sender for BuildLog; it returns False where the same chunk must be sent again.

    A permanent error (invalid token, deleted deployment) counts as sent: the log is then only in the
    container's output.
    """

    def send(number: int, text: str) -> bool:
        body = {"pod": pod, "container": container, "chunks": [{"seq": number, "text": text}]}
        try:
            status, response = api.post(f"/internal/v1/builds/{deployment}/logs", body)
        except (OSError, http.client.HTTPException):
            return False
        if status == 200:
            try:
                return int(json.loads(response)["acknowledged"]) >= number
            except (ValueError, KeyError, TypeError):
                return True
        return not is_temporary(status)

    return send
