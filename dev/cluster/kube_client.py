"""Minimal Kubernetes API client for the few calls that the dev cluster makes itself.

A kubectl process costs 0.1 s per call; this client serves readiness checks, Secrets, build pods and the watch
of Services.
"""

import base64
import http.client
import json
import re
import ssl
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dev.errors import DevClusterError


class KubeApiError(DevClusterError):
    """An API error; `status` is the HTTP status, or 0 without a response."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class KubeApi(ABC):
    """Kubernetes API calls that an installation needs. `HttpKubeApi` and `KubectlApi` implement it."""

    @abstractmethod
    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the JSON response. Raises KubeApiError."""

    def get(self, path: str) -> Any:
        """Return the object at `path`, or None if it does not exist."""
        try:
            return self.call("GET", path)
        except KubeApiError as error:
            if error.status == 404:
                return None
            raise

    def create(self, path: str, body: object) -> bool:
        """Create an object in the collection `path`. Return False if the name exists already."""
        try:
            self.call("POST", path, body)
        except KubeApiError as error:
            if error.status == 409:
                return False
            raise
        return True

    @abstractmethod
    def text(self, path: str) -> str:
        """Return the response as text."""


class HttpKubeApi(KubeApi):
    """Client that authenticates with the certificate of a kubeconfig written by kubeadm."""

    def __init__(self, kubeconfig: Path) -> None:
        text = kubeconfig.read_text()
        server = urlsplit(_field(text, "server"))
        self._host, self._port = server.hostname or "", server.port
        self._context = ssl.create_default_context(cadata=_decoded(text, "certificate-authority-data"))
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(_decoded(text, "client-certificate-data") + _decoded(text, "client-key-data"))
            file.flush()
            self._context.load_cert_chain(file.name)

    def call(self, method: str, path: str, body: object = None, *, content: str = "application/json") -> Any:
        """Return the JSON response. Raises KubeApiError; each wait lasts at most 30 seconds."""
        return json.loads(self._read(method, path, body, content))

    def text(self, path: str) -> str:
        """Return the response as text, such as a container's log."""
        return self._read("GET", path, None, "application/json").decode(errors="replace")

    def _read(self, method: str, path: str, body: object, content: str) -> bytes:
        with self._request(method, path, body, content, 30) as response:
            try:
                return response.read()
            except (OSError, http.client.HTTPException) as error:
                raise KubeApiError(0, f"connection of {method} {path} lost: {error}") from error

    def lines(self, path: str, seconds: float) -> Iterator[bytes]:
        """Yield the lines of a stream until it ends. Raises KubeApiError after `seconds` without a line."""
        with self._request("GET", path, None, "application/json", seconds) as response:
            while True:
                try:
                    line = response.readline()
                except (OSError, http.client.HTTPException) as error:
                    raise KubeApiError(0, f"connection of the stream {path} lost: {error}") from error
                if not line:
                    return
                if not line.endswith(b"\n"):
                    raise KubeApiError(0, f"connection of the stream {path} lost in the middle of a line")
                yield line

    @contextmanager
    def _request(
        self, method: str, path: str, body: object, content: str, seconds: float
    ) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(
            self._host, self._port, timeout=seconds, context=self._context
        )
        headers = {"Accept": "application/json", "Content-Type": content}
        try:
            try:
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise KubeApiError(
                    0, f"the Kubernetes API does not respond: {error}. Run `make up` to start it."
                ) from error
            if response.status >= 400:
                raise KubeApiError(response.status, _message(method, path, response))
            yield response
        finally:
            connection.close()


def _field(text: str, name: str) -> str:
    match = re.search(rf"^\s*{name}:\s*(\S+)\s*$", text, re.MULTILINE)
    if not match:
        raise DevClusterError(
            f"The kubeconfig has no field {name}. Remove the pki directory and run `make up` again."
        )
    return match[1]


def _decoded(text: str, name: str) -> str:
    return base64.b64decode(_field(text, name)).decode()


def _message(method: str, path: str, response: http.client.HTTPResponse) -> str:
    raw = response.read(65536)
    try:
        message = json.loads(raw)["message"]
    except (ValueError, KeyError, TypeError):
        message = raw.decode(errors="replace")[:500]
    return f"{method} {path} returned {response.status}: {message}"
