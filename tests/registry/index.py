"""A small package index with basic authentication and generated wheels."""

import base64
import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

USERNAME, PASSWORD = "robot@team", "p/a:s s%w0rd"


def wheel(name: str, version: str, requires: tuple[str, ...] = ()) -> bytes:
    """Return the bytes of a pure wheel with one module."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {line}\n" for line in requires)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"{name}.py", f"NAME = {name!r}\n")
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return packed.getvalue()


class PackageIndex(ThreadingHTTPServer):
    """Index that serves `files` (name → bytes) below /private/<token>/simple/ to authenticated clients."""

    token = "t0ken-in-the-path"

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _IndexHandler)
        self.files = files
        self.commands: set[str] = set()
        self.asked: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/private/{self.token}/simple/"

    def secrets(self) -> list[bytes]:
        """Return all encodings of the credential."""
        pair = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        return [word.encode() for word in (PASSWORD, "p%2Fa%3As%20s%25w0rd", "s%25w0rd", pair, self.token)]


class _IndexHandler(BaseHTTPRequestHandler):
    server: PackageIndex

    def do_GET(self) -> None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):  # as any other process could
            try:
                self.server.commands.add(path.read_bytes().decode("utf-8", "replace"))
            except OSError:
                continue
        expected = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {expected}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="index"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        last = self.path.partition("?")[0].rstrip("/").rpartition("/")[2]
        self.server.asked.add(last)
        if last in self.server.files:
            return self._respond(self.server.files[last], "application/octet-stream")
        links = [
            f'<a href="{name}?key={self.server.token}#sha256={hashlib.sha256(data).hexdigest()}">{name}</a>'
            for name, data in self.server.files.items()
            if name.partition("-")[0] == last.replace("-", "_")
        ]
        if not links:
            return self.send_error(404)
        return self._respond("\n".join(links).encode(), "text/html")

    def do_HEAD(self) -> None:
        self.send_error(405)  # uv asks for ranges first, which this index does not have

    def _respond(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def serve_index(files: dict[str, bytes]) -> Iterator[PackageIndex]:
    """Serve an index while the context is open."""
    with PackageIndex(files) as index:
        thread = threading.Thread(target=index.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield index
        finally:
            index.shutdown()
            thread.join()
