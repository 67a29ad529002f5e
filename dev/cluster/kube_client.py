"""A small client of the Kubernetes API, for the few calls that the ground makes itself.

A kubectl process costs a tenth of a second each; this one serves readiness,
Secrets, build pods and the watch over Services.
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
    """The API answered with an error; `status` is the HTTP status, 0 where it did not answer at all."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class KubeApi(ABC):
    """What installing the service asks of a client: `Kube` here, kubectl for clusters that are not ours."""

    @abstractmethod
    def call(self, method: str, path: str, body: object = None) -> Any:
        """The answer's JSON. Raises KubeError."""

    def get(self, path: str) -> Any:
        """The object at `path`, or None where there is none."""
        try:
            return self.call("GET", path)
        except KubeApiError as error:
            if error.status == 404:
                return None
            raise

    def create(self, path: str, body: object) -> bool:
        """Creates an object in the collection `path`. False if one of that name is there already."""
        try:
            self.call("POST", path, body)
        except KubeApiError as error:
            if error.status == 409:
                return False
            raise
        return True

    @abstractmethod
    def text(self, path: str) -> str:
        """The answer as text."""


class HttpKubeApi(KubeApi):
    """Calls the API as the user of a kubeconfig that kubeadm wrote."""

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
        """The answer's JSON. Raises KubeError; every wait is at most 30 seconds."""
        with self._request(method, path, body, content, 30) as response:
            return json.loads(response.read())

    def text(self, path: str) -> str:
        """The answer as text, such as a container's log."""
        with self._request("GET", path, None, "application/json", 30) as response:
            return response.read().decode(errors="replace")

    def lines(self, path: str, seconds: float) -> Iterator[bytes]:
        """The lines of a stream until it ends; raises KubeError when none came for `seconds`."""
        with self._request("GET", path, None, "application/json", seconds) as response:
            while True:
                try:
                    line = response.readline()
                except (OSError, http.client.HTTPException) as error:
                    raise KubeApiError(0, f"the stream {path} broke: {error}") from error
                if not line:
                    return
                if not line.endswith(b"\n"):
                    raise KubeApiError(0, f"the stream {path} broke in the middle of a line")
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
                    0, f"the Kubernetes API does not answer: {error}. `make up` starts it."
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
            f"The kubeconfig has no {name}. Remove the pki directory and run `make up` again."
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
    return f"{method} {path} was answered {response.status}: {message}"
