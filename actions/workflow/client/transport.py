"""One HTTP request. Does not follow redirects, which would receive the key; uses the usual proxies.

Called by `actions.workflow.client.api`.
"""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPResponse
from typing import Any, Protocol, cast

from actions.workflow.errors import ErrorResponse, Redirected, StepFailed

CONNECTION_ERRORS = (OSError, http.client.HTTPException)
"""Exceptions of a broken connection."""
_MAX_ERROR_BYTES = 64 * 1024
_AGENT = "crewyard-action/1"


class UploadBody(Protocol):
    """A body sent in chunks; the headers have its length."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes; b"" at the end."""
        ...


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow no redirect; urllib then raises HTTPError."""


_opener = urllib.request.build_opener(_NoRedirect)


def send_request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | UploadBody | None = None,
    seconds: float = 30.0,
) -> HTTPResponse:
    """Send one request and return the successful response, which the caller must close.

    `seconds` bounds each network wait. Raises ErrorResponse for an error status, one of CONNECTION_ERRORS,
    Redirected for a 307 to a GET, StepFailed for any other redirect.
    """
    if not url.lower().startswith(("http://", "https://")):
        raise StepFailed(f"The URL of {method} is not an http or https URL.")
    request = urllib.request.Request(
        url, data=cast(Any, body), method=method, headers={"User-Agent": _AGENT, **headers}
    )
    try:
        response = _opener.open(request, timeout=max(0.1, seconds))
    except urllib.error.HTTPError as error:
        with error:
            raise _error_for_status(error, method, request) from None
    except urllib.error.URLError as error:
        raise ConnectionError(f"{request.host} cannot be reached: {error.reason}") from None
    except ValueError as error:
        raise StepFailed(f"The URL of {method} is invalid: {error}.") from None
    return cast(HTTPResponse, response)


def _error_for_status(
    error: urllib.error.HTTPError, method: str, request: urllib.request.Request
) -> Exception:
    if 300 <= error.code < 400:
        message = (
            f"{request.host} responded to {method} with a redirect ({error.code}), which is not followed. "
            "Is the input api-url the URL of the API?"
        )
        location = str(error.headers.get("Location") or "")
        # Never downgrade from https to http.
        if error.code == 307 and method == "GET" and location.startswith(("https://", f"{request.type}://")):
            return Redirected(message, location)
        return StepFailed(message)
    raw = error.read(_MAX_ERROR_BYTES)
    code, message = "http", raw.decode("utf-8", "replace").strip()[:300] or str(error.reason)
    try:
        fields = json.loads(raw)["error"]
        code, message = str(fields["code"]), str(fields["message"])
    except (ValueError, KeyError, TypeError):
        pass  # a proxy responded, not the API
    return ErrorResponse(error.code, code, message, _seconds(error.headers.get("Retry-After")))


def _seconds(header: str | None) -> float | None:
    """Return a Retry-After in seconds; None for its date form."""
    text = (header or "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def fetch_token(url: str, bearer: str, seconds: float) -> bytes:
    """Return the response of GitHub's token service.

    Raises ErrorResponse if the same request may succeed later, otherwise StepFailed.
    """
    headers = {"Authorization": f"Bearer {bearer}", "Accept": "application/json"}
    try:
        with send_request("GET", url, headers, None, seconds) as response:
            return response.read(_MAX_ERROR_BYTES)
    except ErrorResponse as error:
        message = f"GitHub refused an OIDC token: {error.message}"
        if not error.retryable:
            raise StepFailed(f"{message} ({error.status}).") from None
        raise ErrorResponse(error.status, error.code, message, error.retry_after) from None
    except CONNECTION_ERRORS as error:
        raise ErrorResponse(503, "http", f"GitHub's token service cannot be reached: {error}") from None
