"""What a call to the apiserver can fail with, by what the caller should do about it."""

from collections.abc import Mapping
from typing import Any


class KubeError(Exception):
    """The apiserver refused a call. `message` is its own text, which names the field where there is one."""

    def __init__(
        self, status: int, reason: str, message: str, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}


class NotFound(KubeError):
    """The object, or its kind, is not there."""


class AlreadyExists(KubeError):
    """An object of that name is there."""


class Conflict(KubeError):
    """The object changed since it was read, or a precondition does not hold: read again."""


class Invalid(KubeError):
    """The object breaks a rule of its schema: trying again will not help."""


class Forbidden(KubeError):
    """Our service account may not do this, or admission refused it."""


class Expired(KubeError):
    """The resourceVersion is too old: list again."""


class Unavailable(KubeError):
    """The apiserver could not be reached or was overloaded: try again later."""


_BY_REASON: dict[str, type[KubeError]] = {
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Invalid": Invalid,
    "BadRequest": Invalid,
    "Forbidden": Forbidden,
    "Expired": Expired,
    "Gone": Expired,
}


def from_status(code: int, body: Mapping[str, Any]) -> KubeError:
    """The error for an answer: `body` is a metav1.Status where the apiserver gave one."""
    reason = str(body.get("reason") or "")
    message = str(body.get("message") or f"the apiserver answered {code}")
    found = _BY_REASON.get(reason)
    if found is None:
        found = Unavailable if code >= 500 or code == 429 else KubeError
        found = {404: NotFound, 409: Conflict, 410: Expired, 403: Forbidden, 422: Invalid}.get(code, found)
    return found(code, reason or str(code), message, body.get("details"))
