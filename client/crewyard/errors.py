"""What calls raise. The service's codes are classes, so that callers catch what they can deal with."""

from collections.abc import Mapping
from typing import Any


class CrewyardError(Exception):
    """Anything that goes wrong with a call."""


class WrongValue(CrewyardError, ValueError):
    """Something that cannot be sent: no name, no text, no JSON."""


class ConnectionFailed(CrewyardError):
    """The service could not be reached, or broke off, as often as it was tried."""


class ApiError(CrewyardError):
    """An answer that is no success.

    `code` is the service's stable word, `details` what belongs to it, `request_id` finds it in the service's
    log, `retry_after` is in seconds where the service says when to come again.
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
        """The field that is wrong, where the answer names one."""
        found = self.details.get("field")
        return str(found) if found is not None else None

    @property
    def passing(self) -> bool:
        """Whether the same call may succeed a little later."""
        return self.status in (408, 425, 429) or self.status >= 500


class InvalidRequest(ApiError):
    """400, 413, 415: the request itself is wrong."""


class Unauthorized(ApiError):
    """401: the key is missing or does not hold."""


class Forbidden(ApiError):
    """403: the key may not do it."""


class NotFound(ApiError):
    """404: it is not there, or the key may not see it."""


class Conflict(ApiError):
    """409: the state of things forbids it."""


class RateLimited(ApiError):
    """429: too many requests, or too many runs waiting (`queue_full`)."""


class Unavailable(ApiError):
    """5xx: the service cannot answer now."""


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


def of_answer(status: int, headers: Mapping[str, str], body: Any) -> ApiError:
    """The error of an answer; `body` is its JSON, or None where it had none."""
    found = body.get("error") if isinstance(body, dict) else None
    error = found if isinstance(found, dict) else {}
    after = headers.get("Retry-After", "")
    kind = _BY_STATUS.get(status, Unavailable if status >= 500 else ApiError)
    message = error.get("message") or f"the service answered {status}"
    if 300 <= status < 400 and headers.get("Location"):
        # Not followed: a key is for the address that was given.
        message = f"the address leads to {headers['Location'][:200]}; correct CREWYARD_URL, or log in there"
    return kind(
        status,
        str(error.get("code") or "unknown"),
        str(message),
        error.get("details") if isinstance(error.get("details"), dict) else None,
        headers.get("X-Request-Id"),
        float(after) if after.isdecimal() else None,
    )
