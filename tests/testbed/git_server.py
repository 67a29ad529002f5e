"""A git server for tests and the demo: `git http-backend` behind a small HTTP server. Standard library only.

    with GitServer(directory) as server:
        repository = server.create("demo")
        sha = repository.commit({"main.py": "print('hello')"}, "A first commit")
        server.url("demo")          # http://127.0.0.1:40123/demo.git

Bind another address if pods must reach it. With `username` and `password`
every request needs them (Basic); with `bearer` a token instead. A `certificate`
(a PEM file with its key) makes it https. `git push` works too. `large_files` are served by the batch API of
Git LFS, by their SHA-256.
"""

import base64
import contextlib
import gzip
import hashlib
import hmac
import http.server
import json
import os
import ssl
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

_MAX_BODY_BYTES = 256 << 20
_TIMEOUT_SECONDS = 60
_IDENTITY = {
    "GIT_AUTHOR_NAME": "Tester",
    "GIT_AUTHOR_EMAIL": "tester@example.org",
    "GIT_COMMITTER_NAME": "Tester",
    "GIT_COMMITTER_EMAIL": "tester@example.org",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


class Repository:
    """A bare repository on disk; commits need no working copy."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def commit(
        self,
        files: Mapping[str, str | bytes],
        message: str,
        branch: str = "main",
        links: Mapping[str, str] | None = None,
        executable: tuple[str, ...] = (),
        submodules: Mapping[str, str] | None = None,
    ) -> str:
        """Commit exactly `files`, symbolic `links` and `submodules` (path → commit); return the commit id."""
        lines = [self._entry(path, data, path in executable) for path, data in files.items()]
        for path, target in (links or {}).items():
            lines.append(f"120000 {self._blob(target.encode())}\t{path}")
        lines += [f"160000 {sha}\t{path}" for path, sha in (submodules or {}).items()]
        index = self.path / f"index-{branch.replace('/', '-')}"
        index.unlink(missing_ok=True)
        environment = {"GIT_INDEX_FILE": str(index)}
        self._git("update-index", "--add", "--index-info", data="\n".join(lines).encode(), more=environment)
        tree = self._git("write-tree", more=environment)
        parent = self.head(branch)
        parents = ["-p", parent] if parent else []
        sha = self._git("commit-tree", tree, *parents, data=message.encode())
        self._git("update-ref", f"refs/heads/{branch}", sha)
        return sha

    def head(self, branch: str = "main") -> str:
        """Return the commit of `branch`, or an empty text."""
        with contextlib.suppress(subprocess.CalledProcessError):
            return self._git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        return ""

    def reset(self, sha: str, branch: str = "main") -> None:
        """Point `branch` to `sha`, as a forced push does."""
        self._git("update-ref", f"refs/heads/{branch}", sha)

    def sign(self, commit: str, key: Path | str, style: str = "ssh", home: Path | None = None) -> str:
        """Point main to a copy of the commit, without parents, that git signed; return its id.

        `home` has the keys of gpg.
        """
        settings, keys = ["-c", f"gpg.format={style}"], {"GNUPGHOME": str(home)} if home else {}
        arguments = [*settings, "commit-tree", f"-S{key}", "-m", "signed", f"{commit}^{{tree}}"]
        signed = self._git(*arguments, more=keys)
        self._git("update-ref", "refs/heads/main", signed)
        return signed

    def configure(self, key: str, value: str) -> None:
        """Set a git config value of this repository."""
        self._git("config", key, value)

    def _entry(self, path: str, data: str | bytes, executable: bool) -> str:
        blob = self._blob(data.encode() if isinstance(data, str) else data)
        return f"{'100755' if executable else '100644'} {blob}\t{path}"

    def _blob(self, data: bytes) -> str:
        return self._git("hash-object", "-w", "--stdin", data=data)

    def _git(self, *arguments: str, data: bytes = b"", more: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            ["git", "--git-dir", str(self.path), *arguments],
            input=data,
            env={**os.environ, **_IDENTITY, **(more or {})},
            check=True,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
        )
        return done.stdout.decode().strip()


class GitServer:
    """Serves the repositories below `root` while the context is open; `port` 0 selects a free one."""

    def __init__(
        self,
        root: Path,
        address: str = "127.0.0.1",
        port: int = 0,
        username: str = "",
        password: str = "",
        bearer: str = "",
        certificate: Path | None = None,
    ) -> None:
        self.root, self.username, self.password, self.bearer = root, username, password, bearer
        self.requests: list[str] = []
        self.large_files: dict[str, bytes] = {}
        self.large_files_url = ""
        self._server = _GitHttpServer((address, port), _GitRequestHandler)
        self._server.owner = self
        self.address, self.port = address, int(self._server.server_address[1])
        self._scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            # Each request's thread makes its own handshake: a silent client must not stop the others.
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "GitServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start serving in a thread."""
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and free the port."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def create(self, name: str) -> Repository:
        """Return the repository `name`; create it if it is missing."""
        return self.repository(self.root, name)

    @staticmethod
    def repository(root: Path, name: str, *options: str) -> Repository:
        """Return a repository below `root` without serving it; `options` are those of `git init`."""
        path = root / f"{name}.git"
        if not path.exists():
            path.mkdir(parents=True)
            repository = Repository(path)
            repository._git("init", "--quiet", "--bare", "--initial-branch=main", *options)
            # As on large hosts: clients may fetch any reachable commit by its id.
            repository.configure("uploadpack.allowReachableSHA1InWant", "true")
        return Repository(path)

    def url(self, name: str, host: str = "") -> str:
        """Return the URL of the repository `name`; `host` overrides the address."""
        return f"{self._scheme}://{host or self.address}:{self.port}/{name}.git"

    def pointer(self, data: bytes) -> str:
        """Serve a large file; return its pointer."""
        oid = hashlib.sha256(data).hexdigest()
        self.large_files[oid] = data
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(data)}\n"

    def large_file_answers(self, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the answers of a batch request; `large_files_url` is another server that has the files."""
        base = self.large_files_url or f"{self._scheme}://{self.address}:{self.port}"
        missing = {"code": 404, "message": "Object does not exist"}
        return [
            {**one, "actions": {"download": {"href": f"{base}/large/{one['oid']}"}}}
            if one["oid"] in self.large_files
            else {**one, "error": missing}
            for one in wanted
        ]

    def is_authorized(self, authorization: str) -> bool:
        """Return whether this Authorization header grants access."""
        if self.bearer:
            return hmac.compare_digest(authorization, f"Bearer {self.bearer}")
        if self.username or self.password:
            pair = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
            return hmac.compare_digest(authorization, f"Basic {pair}")
        return True


class _GitHttpServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    owner: GitServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that close the connection."""


class _GitRequestHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_SECONDS

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        body = self._body()
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self._serve(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing; `GitServer.requests` has the request lines."""

    def _serve(self, body: bytes) -> None:
        owner = cast(_GitHttpServer, self.server).owner
        owner.requests.append(f"{self.command} {self.path}")
        if not owner.is_authorized(self.headers.get("Authorization", "")):
            self._respond(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"credentials are needed\n")
            return
        parts = urlsplit(self.path)
        if parts.path.endswith("/info/lfs/objects/batch"):
            answers = owner.large_file_answers(json.loads(body)["objects"])
            content = json.dumps({"transfer": "basic", "objects": answers}).encode()
            self._respond(200, {"Content-Type": "application/vnd.git-lfs+json"}, content)
            return
        if parts.path.startswith("/large/"):
            found = owner.large_files.get(parts.path.removeprefix("/large/"))
            self._respond(200 if found is not None else 404, {}, found or b"")
            return
        environment = {
            **os.environ,
            **_IDENTITY,
            "GIT_PROJECT_ROOT": str(owner.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": unquote(parts.path),
            "QUERY_STRING": parts.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": self.client_address[0],
            "REMOTE_USER": owner.username or "anonymous",
        }
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "http-backend"],
            input=body,
            env=environment,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n") if ": " in line)
        status = int(fields.pop("Status", "200").split(" ")[0]) if head else 500
        self._respond(status, fields, content)

    def _respond(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts, total = [], 0
            while size := int(self.rfile.readline().split(b";")[0], 16):
                total += size
                if total > _MAX_BODY_BYTES:
                    raise ValueError("the request is too large")
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(min(int(self.headers.get("Content-Length") or 0), _MAX_BODY_BYTES))
