"""Token server of the dev cluster's registry. Started by `up` as a separate process.

The registry redirects clients without a token to it, and accepts what it signs. `GET /token` has the
parameters of the distribution project's token protocol; user and password by Basic, none for pulls.
"""

import base64
import binascii
import json
import secrets
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dev.process.probe import HttpProbe
from dev.process.program import ProcessSpec
from dev.registry import access, signing
from dev.registry.access import RegistryScope
from dev.registry.signing import TokenSigner
from dev.settings import BRIDGE_ADDRESS, REGISTRY_TOKENS_PORT, REPOSITORY, Settings

URL = f"http://{BRIDGE_ADDRESS}:{REGISTRY_TOKENS_PORT}"
ISSUER = "crewyard-ground"
SERVICE = "crewyard-registry"
TOKEN_LIFETIME_SECONDS = 900
_CODE = ("token_server.py", "access.py", "signing.py")
_MAX_CONNECTIONS = 64
_CONNECTION_TIMEOUT_SECONDS = 10.0
_MAX_CACHED_TOKENS = 512


class TokenIssuer:
    """Issues tokens, and reuses recent ones: a signature takes milliseconds."""

    def __init__(self, key: str, signer: TokenSigner, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._signer = signer
        self._clock = clock
        self._lock = threading.Lock()
        self._cache: dict[tuple[str, tuple[RegistryScope, ...]], tuple[int, str]] = {}

    def authenticate(self, authorization: str) -> str | None:
        """Return the user: empty if anonymous, None if the password is wrong."""
        if not authorization:
            return ""
        scheme, _, encoded = authorization.partition(" ")
        try:
            name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (ValueError, binascii.Error):
            return None
        valid = scheme.lower() == "basic" and colon and access.password_matches(self._key, name, password)
        return name if valid else None

    def token(self, user: str, requested: tuple[RegistryScope, ...]) -> tuple[str, int]:
        """Return a token for the permitted part of the scopes, and its issue time."""
        scopes, now = access.granted(requested, user), int(self._clock())
        with self._lock:
            issued_at, text = self._cache.get((user, scopes), (0, ""))
            if 0 <= now - issued_at < TOKEN_LIFETIME_SECONDS // 2:
                return text, issued_at
            if len(self._cache) >= _MAX_CACHED_TOKENS:
                self._cache.clear()
        text = self._signer.token(self._claims(user, scopes, now))
        with self._lock:
            self._cache[user, scopes] = now, text
        return text, now

    def _claims(self, user: str, scopes: tuple[RegistryScope, ...], now: int) -> dict[str, Any]:
        return {
            "iss": ISSUER,
            "sub": user,
            "aud": SERVICE,
            "iat": now,
            "nbf": now - 5,
            "exp": now + TOKEN_LIFETIME_SECONDS,
            "jti": secrets.token_hex(8),
            "access": [
                {"type": scope.kind, "name": scope.name, "actions": list(scope.actions)} for scope in scopes
            ],
        }


class _TokenHandler(BaseHTTPRequestHandler):
    server: "TokenHttpServer"
    timeout = _CONNECTION_TIMEOUT_SECONDS

    def do_GET(self) -> None:
        """Return a token or an error."""
        parts = urlsplit(self.path)
        if parts.path == "/":
            self._respond(200, {"service": SERVICE})
            return
        if parts.path != "/token":
            self._respond(404, {"details": "use /token"})
            return
        issuer = self.server.issuer
        user = issuer.authenticate(self.headers.get("Authorization", ""))
        if user is None:
            self._respond(401, {"details": "user or password is wrong"})
            return
        scope_texts = parse_qs(parts.query, max_num_fields=20).get("scope", [])
        token, issued_at = issuer.token(user, access.parse_scopes(scope_texts))
        issued_text = datetime.fromtimestamp(issued_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        expires_in = TOKEN_LIFETIME_SECONDS - int(time.time() - issued_at)
        self._respond(
            200, {"token": token, "access_token": token, "expires_in": expires_in, "issued_at": issued_text}
        )

    def _respond(self, status: int, body: dict[str, object]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", f'Basic realm="{SERVICE}"')
        self.send_header("Content-Type", "application/json")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Log nothing: every pull requests a token."""


class TokenHttpServer(ThreadingHTTPServer):
    """One thread per request, at most 64 in parallel; further connections are closed after one second."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], issuer: TokenIssuer) -> None:
        self.issuer = issuer
        self._slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__(address, _TokenHandler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Acquire a slot first."""
        if self._slots.acquire(timeout=1.0):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Release the slot afterwards."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore lost connections."""
        if not isinstance(sys.exception(), (OSError, ValueError)):
            socketserver.BaseServer.handle_error(self, request, client_address)


def process_spec(settings: Settings) -> ProcessSpec:
    """Return the process that `up` starts; its fingerprint includes code, key and certificate."""
    code = "".join((REPOSITORY / "dev" / "registry" / name).read_text() for name in _CODE)
    return ProcessSpec(
        name="registry-tokens",
        argv=(sys.executable, "-m", "dev.registry.token_server", str(settings.state)),
        files={settings.run / "registry-tokens.code": code},
        cwd=REPOSITORY,
        probe=HttpProbe(f"{URL}/"),
        grace_seconds=2,
    )


def main(state: str) -> None:
    """Serve without end."""
    settings = Settings(Path(state))
    issuer = TokenIssuer(access.key(settings), signing.ensure(settings))
    TokenHttpServer((BRIDGE_ADDRESS, REGISTRY_TOKENS_PORT), issuer).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
