"""Errors of the API and their one JSON form.

Routes raise HttpApiError; `api.routing.middleware.from_exception` converts every other exception, to
keep internal details from clients. Called by `api.http.responses`, which writes errors, and by
all code that rejects a request.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from aiohttp import web

from kube import errors as kube_errors

RETRY_SECONDS = 2
QUOTA_RETRY_SECONDS = 60
UPLOADS_FULL_RETRY_SECONDS = 3600
"""Uploads expire one by one over the day."""
_REPEATED_VALUE = re.compile(
    r"\b(Invalid|Unsupported|Duplicate|Forbidden) value: "
    r'(?:("(?:[^"\\]|\\.?)*+"?|'
    r"[\w.*&]*[\[{](?:.*[\]}](?=: |, |\]|$)|.*)|"
    r'[^\s:"\[\]{}]+(?=: |, |\]|$))(: )?)?',
    re.DOTALL,
)
"""A string, an object or list up to its last bracket, or a word; none where the apiserver omits the value.

A value without its end reaches to the end of the text, so that the search is linear.
"""
_CODES = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    409: "conflict",
    412: "precondition_failed",
    413: "payload_too_large",
    415: "unsupported_media_type",
    416: "range_not_satisfiable",
    429: "rate_limited",
    500: "internal_error",
    503: "unavailable",
}


class HttpApiError(Exception):
    """An error response: status, stable code, message with the next step, and details (an object)."""

    def __init__(
        self,
        status: int,
        message: str,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code or code_of(status)
        self.message = message
        self.details = dict(details or {})
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """Return the response body."""
        return {"error": {"code": self.code, "message": self.message, "details": self.details}}


def code_of(status: int) -> str:
    """Return the error code of a status; other 4xx: invalid_request, other 5xx: internal_error."""
    return _CODES.get(status) or ("invalid_request" if status < 500 else "internal_error")


def invalid(message: str, field: str | None = None, **details: Any) -> HttpApiError:
    """Return a 400; `field` names the parameter or the path of the body field."""
    return HttpApiError(400, message, {**({"field": field} if field else {}), **details})


def unauthorized() -> HttpApiError:
    """Return the 401, identical for every invalid key so that a guesser learns nothing."""
    return HttpApiError(
        401,
        "no valid API key: send the header Authorization: Bearer <API_KEY> with an accepted key or token "
        "that is neither expired nor revoked",
        headers={"WWW-Authenticate": 'Bearer realm="crewyard"'},
    )


def forbidden(message: str, **details: Any) -> HttpApiError:
    """Return a 403: the key is valid but lacks the permission."""
    return HttpApiError(403, message, details)


def not_found(message: str, **details: Any) -> HttpApiError:
    """Return a 404: the object does not exist, or the key may not see it."""
    return HttpApiError(404, message, details)


def conflict(message: str, **details: Any) -> HttpApiError:
    """Return a 409: the request is valid, but not in the current state."""
    return HttpApiError(409, message, details)


def too_large(limit: int, subject: str) -> HttpApiError:
    """Return a 413: `subject` is larger than `limit` bytes."""
    return HttpApiError(413, f"{subject} is larger than {limit} bytes", {"limit_bytes": limit})


def uploads_full(used: int, limit: int, owner: str, setting: str) -> HttpApiError:
    """Return a 429: the upload quota of a project, or of all, is used up until older uploads expire."""
    return HttpApiError(
        429,
        f"the uploads of {owner} use {used} of {limit} bytes; each is deleted a day after its URL "
        f"expires. Leave out what the crew does not need, or ask the operator to raise {setting}",
        {"field": "size", "limit_bytes": limit, "used_bytes": used},
        headers={"Retry-After": str(UPLOADS_FULL_RETRY_SECONDS)},
    )


def queue_full(message: str, project: str, limit: int, retry_seconds: int) -> HttpApiError:
    """Return a 429: a queue of the project has reached its limit."""
    return HttpApiError(
        429,
        message,
        {"project": project, "limit": limit},
        {"Retry-After": str(retry_seconds)},
        code="queue_full",
    )


def storage_full(project: str, used: int, limit: int) -> HttpApiError:
    """Return a 429: the stored bytes of a project have reached their limit."""
    return HttpApiError(
        429,
        f"the project {project} has {used} stored bytes, and its limit is {limit}; shorten its "
        "retention.records, or ask the operator to raise the limit project_bytes or its plan",
        {"project": project, "limit_bytes": limit, "used_bytes": used},
        headers={"Retry-After": str(UPLOADS_FULL_RETRY_SECONDS)},
    )


def budget_exceeded(message: str, project: str) -> HttpApiError:
    """Return a 409: the project has used its budget."""
    return HttpApiError(409, message, {"project": project}, code="budget_exceeded")


def unavailable(message: str = "the service is unavailable right now; try again shortly") -> HttpApiError:
    """Return a 503: a dependency is unavailable; no data is lost and a retry may succeed."""
    return HttpApiError(503, message, headers={"Retry-After": str(RETRY_SECONDS)})


def internal(request_id: str) -> HttpApiError:
    """Return the 500; only the log has the details, under the request id."""
    return HttpApiError(
        500,
        "internal error; the log of the service has the details under this request id",
        {"request_id": request_id},
    )


def from_kube_error(error: kube_errors.KubeError) -> HttpApiError | None:
    """Convert an apiserver error; None if the API server itself is at fault."""
    if isinstance(error, kube_errors.ObjectTooLarge):
        return HttpApiError(
            413, "the object is larger than Kubernetes stores, 1.5 MiB by default; make it smaller"
        )
    if isinstance(error, kube_errors.Invalid):
        causes = list(error.details.get("causes") or ())
        fields = [field for cause in causes if (field := api_field(str(cause.get("field") or "")))]
        messages = [_cause_text(str(cause.get("message") or "")) for cause in causes] or [
            _cause_text(error.message)
        ]
        return invalid("; ".join(messages)[:2000], fields[0] if fields else None)
    if isinstance(error, kube_errors.AlreadyExists):
        return conflict("an object of this name already exists; choose another name")
    if isinstance(error, kube_errors.KubeConflict):
        return conflict("the object was changed by another client; read it again and repeat the request")
    if isinstance(error, kube_errors.KubeNotFound):
        return not_found("the object no longer exists")
    if isinstance(error, kube_errors.NamespaceTerminating):
        return conflict(
            "the namespace is being deleted and takes no new objects; name a project of another namespace, "
            "or ask the operator to create the namespace again"
        )
    if isinstance(error, kube_errors.QuotaExceeded):
        return HttpApiError(
            429,
            "the installation has as many objects of this kind as it allows; try again after some have "
            "ended, or ask the operator to raise the ResourceQuota",
            headers={"Retry-After": str(QUOTA_RETRY_SECONDS)},
        )
    if isinstance(error, kube_errors.AdmissionDenied):
        message = f"an admission policy of the cluster denied the object: {_cause_text(error.message)}"
        return forbidden(message[:2000])
    if isinstance(error, kube_errors.KubeUnavailable | kube_errors.Expired):
        return unavailable("the Kubernetes API cannot be reached right now; try again shortly")
    return None


def api_field(path: str) -> str:
    """Convert a field of an object to API form: `spec.schedules[0].timeZone` → `schedules.0.time_zone`."""
    relative = re.sub(r"\[(\d+)\]", r".\1", re.sub(r"^spec\.?", "", "" if path == "<nil>" else path))
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), relative)


def _cause_text(message: str) -> str:
    # `Invalid value: "<value>": <message of the rule>` repeats the value, perhaps a password; drop it.
    def without_value(match: re.Match[str]) -> str:
        return f"{match[1].lower()} value" if match[2] and not match[3] else ""

    return _REPEATED_VALUE.sub(without_value, message)


def from_http_exception(error: web.HTTPException) -> HttpApiError:
    """Convert the error responses of aiohttp."""
    status = error.status
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return HttpApiError(
            405,
            f"the method {error.method} is not allowed here; use {allowed}",
            {"allowed": sorted(error.allowed_methods)},
            {"Allow": allowed},
        )
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return HttpApiError(413, "the request body is too large")
    if status == 404:
        return not_found("no such path; /openapi.json lists the available paths")
    return HttpApiError(status, HTTPStatus(status).phrase.lower())
