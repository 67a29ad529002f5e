"""What the crews themselves say they did: a file of lines that the product knows nothing of.

A crew's first act is to put its start here, later numbered marks, at last its end. A line is on the disk
before the crew is answered. Called by `tests.campaign.testbed`; `read` by the checker.
"""

import json
import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

START, MARK, END = "start", "mark", "end"
MOST_BYTES = 64 * 1024


@dataclass(frozen=True)
class LedgerEntry:
    """One line. `token` is drawn by the process that wrote it: two tokens of one run are two starts."""

    run: str
    token: str
    what: str
    number: int
    at: float
    pod: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def read(path: Path) -> list[LedgerEntry]:
    """All entries in the order in which they came; a torn last line, of a killed ledger, does not count."""
    found = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            found.append(LedgerEntry(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return found


def starts(entries: Iterable[LedgerEntry]) -> dict[str, list[LedgerEntry]]:
    """The starts of each run."""
    found: dict[str, list[LedgerEntry]] = {}
    for entry in entries:
        if entry.what == START:
            found.setdefault(entry.run, []).append(entry)
    return found


class Ledger:
    """Listens on `address`, at the same port after a stop; appends to `path`, which may have lines."""

    def __init__(self, path: Path, address: str) -> None:
        self.path, self._address, self._port = path, address, 0
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Where crews reach it."""
        return f"http://{self._address}:{self._port}"

    def start(self) -> None:
        """Listen. Raises OSError where the port was taken meanwhile."""
        ledger = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                status = 413 if length > MOST_BYTES else 200
                if status == 200:
                    ledger._append(self.rfile.read(length))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Says nothing: the lines are the log."""

        if self.path.exists() and not _whole(self.path):
            with self.path.open("ab") as file:
                file.write(b"\n")
        self._server = _LedgerServer((self._address, self._port), Handler)
        self._port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Stop listening; `start` listens at the same port again."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def entries(self) -> list[LedgerEntry]:
        """All entries so far."""
        return read(self.path)

    def _append(self, body: bytes) -> None:
        fields = json.loads(body)
        with self._lock:
            # The moment is the ledger's, so that the order of the lines is that of the moments.
            line = json.dumps({**fields, "at": time.time()}) + "\n"
            with self.path.open("ab") as file:
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())


class _LedgerServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def _whole(path: Path) -> bool:
    return path.read_bytes()[-1:] in (b"", b"\n")
