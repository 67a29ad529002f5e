"""Registry client with token authentication, standard library only.

Called by `dev.images.oci`, which pushes the dev cluster's images, and by everything on this machine that
reads images.
"""

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

_PARAMETER = re.compile(r'([a-z]+)="([^"]*)"')
_CALL_TIMEOUT_SECONDS = 120.0
_TOKEN_TIMEOUT_SECONDS = 20.0
_MAX_TOKEN_BYTES = 1 << 20
# The dev cluster's registry is never behind a proxy.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def token_address(challenge: str) -> str:
    """Return the URL of the token that a 401 response requires; empty if it requires none."""
    scheme, _, parameters_text = challenge.partition(" ")
    parameters = dict(_PARAMETER.findall(parameters_text))
    if scheme.lower() != "bearer" or not parameters.get("realm"):
        return ""
    query = {name: parameters[name] for name in ("service", "scope") if name in parameters}
    return f"{parameters['realm']}?{urlencode(query)}"


def token(address: str, basic: str = "") -> str:
    """Return the token from that URL. Raises OSError, ValueError."""
    headers = {"Authorization": f"Basic {basic}"} if basic else {}
    request = urllib.request.Request(address, headers=headers)
    with _DIRECT.open(request, timeout=_TOKEN_TIMEOUT_SECONDS) as response:
        return str(json.loads(response.read(_MAX_TOKEN_BYTES))["token"])


def open_url(url: str, accept: str = "*/*", seconds: float = _CALL_TIMEOUT_SECONDS) -> Any:
    """Return the response to a GET, with an anonymous token if required. Raises OSError."""
    request = urllib.request.Request(url, headers={"Accept": accept})
    try:
        return _DIRECT.open(request, timeout=seconds)
    except urllib.error.HTTPError as error:
        address = token_address(error.headers.get("WWW-Authenticate", "")) if error.code == 401 else ""
        error.close()
        if not address:
            raise
    # Not sent to the target of a redirect.
    request.add_unredirected_header("Authorization", f"Bearer {token(address)}")
    return _DIRECT.open(request, timeout=seconds)


class RegistryClient:
    """Client of the registry at `url` (plain HTTP). `basic` are user and password, or empty."""

    def __init__(self, url: str, basic: str = "") -> None:
        self._url = url
        self._basic = basic
        self._token = ""

    def call(
        self, method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Return status and `Location` of one request; a file as body must be seekable.

        `target` is a path or a URL of the registry. Raises OSError, HTTPException, ValueError.
        """
        start = body.tell() if hasattr(body, "tell") else 0
        status, location, challenge = self._once(method, target, body, headers)
        address = token_address(challenge) if status == 401 else ""
        if not address:
            return status, location
        self._token = token(address, self._basic)
        if hasattr(body, "seek"):
            body.seek(start)
        return self._once(method, target, body, headers)[:2]

    def _once(
        self, method: str, target: str, body: Any, headers: Mapping[str, str] | None
    ) -> tuple[int, str, str]:
        parts = urlsplit(target if "://" in target else self._url + target)
        connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=_CALL_TIMEOUT_SECONDS
        )
        request_headers = {
            **(headers or {}),
            **({"Authorization": f"Bearer {self._token}"} if self._token else {}),
        }
        try:
            address = f"{parts.path}?{parts.query}" if parts.query else parts.path
            connection.request(method, address, body, request_headers)
            response = connection.getresponse()
            response.read()
            response_headers = response.headers
            return (
                response.status,
                response_headers.get("Location", ""),
                response_headers.get("WWW-Authenticate", ""),
            )
        finally:
            connection.close()
