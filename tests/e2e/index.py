"""A small package index, served to pods by a test. Standard library only."""

import base64
import hashlib
import hmac
import http.server
import io
import threading
import zipfile
from typing import Any


def wheel(name: str, version: str, code: str) -> tuple[str, bytes]:
    """The file name and content of a pure Python wheel with one module."""
    info = f"{name}-{version}.dist-info"
    entries = {
        f"{name}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in entries.items()
    )
    entries[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for path, text in entries.items():
            packed.writestr(path, text)
    return f"{name}-{version}-py3-none-any.whl", buffer.getvalue()


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


class WheelIndex:
    """Serves files as a simple index below /simple/, and below /files/, to those who know name and password.

    Without a name, to all.
    """

    def __init__(self, address: str, username: str, password: str, files: dict[str, bytes]) -> None:
        self.files = files
        pair = base64.b64encode(f"{username}:{password}".encode()).decode()
        self.authorization = f"Basic {pair}" if username else ""
        self.refused = 0
        self.served: list[str] = []
        self._server = _IndexServer((address, 0), _IndexHandler)
        self._server.index = self
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> "WheelIndex":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> bytes | None:
        """The body for a path, or None where there is nothing."""
        parts = path.strip("/").split("/")
        if len(parts) == 2 and parts[0] == "simple":
            links = [name for name in self.files if name.startswith(f"{parts[1].replace('-', '_')}-")]
            return "".join(f'<a href="/files/{name}">{name}</a>\n' for name in links).encode() or None
        return self.files.get(parts[-1]) if parts[0] == "files" else None


class _IndexServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    index: WheelIndex


class _IndexHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        index = self.server.index  # type: ignore[attr-defined]
        given = self.headers.get("Authorization", "")
        if index.authorization and not hmac.compare_digest(given, index.authorization):
            index.refused += 1
            self._send(401, b"credentials are needed", {"WWW-Authenticate": 'Basic realm="index"'})
            return
        body = index.answer(self.path)
        index.served.append(self.path)
        kind = "text/html" if self.path.startswith("/simple/") else "application/octet-stream"
        self._send(404 if body is None else 200, body or b"", {"Content-Type": kind})

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
