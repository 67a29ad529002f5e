"""HTTP client of the internal API, with the build token. Called by logs, report and source.fetch_archive."""

import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit


class InternalApiClient:
    """Client for the internal API at `base_url`; `timeout` (seconds) bounds every wait.

    With `authorities` (PEM), it accepts a certificate of theirs only.
    """

    def __init__(self, base_url: str, token: str, timeout: float = 30.0, authorities: str = "") -> None:
        self._parts = urlsplit(base_url)
        self._headers = {"Authorization": f"Bearer {token}"}
        self._timeout = timeout
        self._context: ssl.SSLContext | None = None
        if authorities:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._context.load_verify_locations(cadata=authorities)

    def post(self, path: str, body: Mapping[str, Any]) -> tuple[int, bytes]:
        """POST JSON; return status and body. Raises OSError or http.client.HTTPException."""
        connection = self._connection()
        try:
            headers = {**self._headers, "Content-Type": "application/json"}
            connection.request("POST", self._path(path), json.dumps(body).encode(), headers)
            response = connection.getresponse()
            return response.status, response.read(1 << 20)
        finally:
            connection.close()

    def get(self, path: str) -> http.client.HTTPResponse:
        """GET; return the response with an unread body. Raises OSError or http.client.HTTPException."""
        connection = self._connection()
        connection.request("GET", self._path(path), headers=self._headers)
        return connection.getresponse()

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._context)
        return http.client.HTTPConnection(host, port, timeout=self._timeout)

    def _path(self, path: str) -> str:
        return self._parts.path.rstrip("/") + quote(path)
