"""Exceptions of the client. Each group of HTTP statuses has a class, to catch selectively."""

from collections.abc import Mapping
from typing import Any


class CrewyardError(Exception):
    """Base class of all client errors."""


class WrongValue(CrewyardError, ValueError):
    """A value that cannot be sent: an invalid name, undecodable text, or not JSON."""


class LocalFileError(CrewyardError):
    """A local file or directory that cannot be read or written."""


class ConnectionFailed(CrewyardError):
    """The service was unreachable, or the connection broke, on every attempt."""


class ApiError(CrewyardError):
    """An error response of the API.

    `code` is the stable error code, `details` its fields, `request_id` identifies the request in the service
    log, `retry_after` is the Retry-After header in seconds, if any.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.details = dict(details or {})
        self.request_id, self.retry_after = request_id, retry_after

    @property
    def field(self) -> str | None:
        """The invalid field, if the response names one."""
        name = self.details.get("field")
        return str(name) if name is not None else None

    @property
    def passing(self) -> bool:
        """Whether the same call may succeed later."""
        return self.status in (408, 425, 429) or self.status >= 500


class InvalidRequest(ApiError):
    """400, 413, 415: the request is invalid."""


class Unauthorized(ApiError):
    """401: the key is missing, revoked or expired."""


class Forbidden(ApiError):
    """403: the key lacks the scope or the project."""


class NotFound(ApiError):
    """404: the object does not exist, or the key cannot read it."""


class Conflict(ApiError):
    """409: the current state does not allow the call."""


class RateLimited(ApiError):
    """429: too many requests, or too many runs waiting (`queue_full`)."""


class Unavailable(ApiError):
    """5xx: the service failed or is unavailable."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: InvalidRequest,
    415: InvalidRequest,
    429: RateLimited,
}


def error_for_response(status: int, headers: Mapping[str, str], body: Any, host: str) -> ApiError:
    """Return the error for a response of `host`; `body` is its JSON, or None if it had none."""
    field = body.get("error") if isinstance(body, dict) else None
    error = field if isinstance(field, dict) else {}
    after = headers.get("Retry-After", "")
    kind = _BY_STATUS.get(status, Unavailable if status >= 500 else ApiError)
    message = (
        error.get("message")
        or f"{host} responded {status} without a message; repeat the request, or check CREWYARD_URL"
    )
    if 300 <= status < 400 and headers.get("Location"):
        # Do not follow the redirect: the key is valid for the configured address only.
        message = (
            f"the address redirects to {headers['Location'][:200]}; correct CREWYARD_URL, or log in there"
        )
    return kind(
        status,
        str(error.get("code") or "unknown"),
        str(message),
        error.get("details") if isinstance(error.get("details"), dict) else None,
        headers.get("X-Request-Id"),
        float(after) if after.isdecimal() else None,
    )
