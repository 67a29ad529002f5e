"""Errors of calls to the apiserver, one class per reaction of the caller. Raised by `kube.client`."""

import re
from collections.abc import Mapping
from typing import Any


class KubeError(Exception):
    """The apiserver rejected a call. `message` is its own text and names the field where there is one."""

    def __init__(
        self, status: int, reason: str, message: str, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}


class KubeNotFound(KubeError):
    """The object or its kind does not exist."""


class AlreadyExists(KubeError):
    """An object of that name exists."""


class KubeConflict(KubeError):
    """The object changed since it was read, or a precondition does not hold; read again."""


class Invalid(KubeError):
    """The object violates its schema, or a ValidatingAdmissionPolicy denied it: see `is_final`."""


class ObjectTooLarge(Invalid):
    """The object is larger than the apiserver reads or etcd stores."""


class KubeForbidden(KubeError):
    """The service account lacks the permission, or admission denied the call."""


class QuotaExceeded(KubeForbidden):
    """A ResourceQuota of the namespace is used up; retry once objects were deleted."""


class NamespaceTerminating(KubeForbidden):
    """The namespace is being deleted and takes no new objects."""


class AdmissionDenied(KubeForbidden):
    """An admission webhook or policy of the cluster denied the object."""


class Expired(KubeError):
    """The resourceVersion is too old; list again."""


class KubeUnavailable(KubeError):
    """The apiserver is unreachable or overloaded; retry later."""


class WebhookUnavailable(KubeUnavailable):
    """An admission webhook of the cluster did not answer; retry later."""


_CLASSES_BY_REASON: dict[str, type[KubeError]] = {
    "NotFound": KubeNotFound,
    "AlreadyExists": AlreadyExists,
    "Conflict": KubeConflict,
    "Invalid": Invalid,
    "BadRequest": Invalid,
    "Forbidden": KubeForbidden,
    "Expired": Expired,
    "Gone": Expired,
}


# Of etcd, then of its client in the apiserver; both come as 500 without a reason.
_OVERSIZED = ("etcdserver: request is too large", "trying to send message larger than max")
# Of a webhook, then of a ValidatingAdmissionPolicy.
_DENIALS = (" denied the request", " denied request: ")
_OWN_POLICY = re.compile(
    "ValidatingAdmissionPolicy '[^']*crewyard[^']*-(pods|users|writers|run-egress|waiting-pods)'"
)
"""The chart puts the release's name before or within; see `crewyard.base`."""


def is_denial(message: str) -> bool:
    """Return whether an admission webhook or policy denied the call, by the text of the apiserver. Pure.

    Not one of this installation: what those deny is invalid.
    """
    return any(text in message for text in _DENIALS) and not _OWN_POLICY.search(message)


def is_final(error: KubeError) -> bool:
    """Return whether a retry does not help: the object violates its schema, and no policy denied it. Pure."""
    return isinstance(error, Invalid) and not is_denial(error.message)


def from_status(code: int, body: Mapping[str, Any]) -> KubeError:
    """Return the error for a response; `body` is a metav1.Status where the apiserver sent one."""
    reason = str(body.get("reason") or "")
    message = str(body.get("message") or f"the apiserver answered {code}")
    error_class = _CLASSES_BY_REASON.get(reason)
    if error_class is KubeForbidden and "exceeded quota:" in message:
        error_class = QuotaExceeded
    elif error_class is KubeForbidden and "because it is being terminated" in message:
        error_class = NamespaceTerminating
    elif error_class is KubeForbidden and "status unknown for quota:" in message:
        # Until the quota controller has counted, some seconds after an installation.
        error_class = KubeUnavailable
    elif error_class in (None, KubeForbidden) and code in (400, 403) and is_denial(message):
        # A webhook that names no code is answered with 400, and without a reason.
        error_class = AdmissionDenied
    elif error_class is None and code == 500 and "failed calling webhook" in message:
        error_class = WebhookUnavailable
    elif error_class is None and code == 500 and any(text in message for text in _OVERSIZED):
        error_class = ObjectTooLarge
    if error_class is None:
        error_class = KubeUnavailable if code >= 500 or code == 429 else KubeError
        error_class = {
            404: KubeNotFound,
            409: KubeConflict,
            410: Expired,
            403: KubeForbidden,
            413: ObjectTooLarge,
            422: Invalid,
        }.get(code, error_class)
    return error_class(code, reason or str(code), message, body.get("details"))
