"""Calls of a build pod to the facade, under its build token. Used by build.logs and build.source.fetch_archive."""

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit


class Facade:
    """`base_url` is the facade's internal address; every wait is bounded by `timeout` seconds."""

    def __init__(self, base_url: str, token: str, timeout: float = 30.0) -> None:
        self._parts = urlsplit(base_url)
        self._headers = {"Authorization": f"Bearer {token}"}
        self._timeout = timeout

    def post(self, path: str, body: Mapping[str, Any]) -> tuple[int, bytes]:
        """Status and body of one POST of JSON. Raises OSError or http.client.HTTPException."""
        connection = self._connection()
        try:
            headers = {**self._headers, "Content-Type": "application/json"}
            connection.request("POST", self._path(path), json.dumps(body).encode(), headers)
            answer = connection.getresponse()
            return answer.status, answer.read(1 << 20)
        finally:
            connection.close()

    def get(self, path: str) -> http.client.HTTPResponse:
        """The answer to one GET, its body still to be read. Raises OSError or http.client.HTTPException."""
        connection = self._connection()
        connection.request("GET", self._path(path), headers=self._headers)
        return connection.getresponse()

    def _connection(self) -> http.client.HTTPConnection:
        secure = self._parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        return kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout)

    def _path(self, path: str) -> str:
        return self._parts.path.rstrip("/") + quote(path)
