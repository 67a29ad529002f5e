"""Every failure the API can answer with, in the one shape it has.

Routes raise `ApiError`s; `of_exception` turns whatever else went wrong into one,
so that nothing of our inside ever reaches a caller. Called by `api.http.responses`,
which writes them, and by everything that refuses.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from aiohttp import web

from kube import errors as kube_errors

RETRY_SECONDS = 2
FULL_SECONDS = 3600
"""Uploads go one by one over the day."""
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


class ApiError(Exception):
    """A refusal: its status, its stable code, a sentence with the next step, and details (an object)."""

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
        """The answer's body."""
        return {"error": {"code": self.code, "message": self.message, "details": self.details}}


def code_of(status: int) -> str:
    """The code of a status; any other 4xx is an invalid request, any other 5xx internal."""
    return _CODES.get(status) or ("invalid_request" if status < 500 else "internal_error")


def invalid(message: str, field: str | None = None, **details: Any) -> ApiError:
    """400: the request is wrong; `field` names the parameter or the path of the body's field."""
    return ApiError(400, message, {**({"field": field} if field else {}), **details})


def unauthorized() -> ApiError:
    """401, the same for every bad key: nothing tells a guesser why."""
    return ApiError(
        401,
        "no valid API key: send the header Authorization: Bearer <API_KEY> with a key, or a token that is "
        "taken here, that is neither expired nor revoked",
        headers={"WWW-Authenticate": 'Bearer realm="crewyard"'},
    )


def forbidden(message: str, **details: Any) -> ApiError:
    """403: the key is good, but not for this."""
    return ApiError(403, message, details)


def not_found(message: str, **details: Any) -> ApiError:
    """404: there is no such thing, or the key may not see it."""
    return ApiError(404, message, details)


def conflict(message: str, **details: Any) -> ApiError:
    """409: the request is right, but not in this state."""
    return ApiError(409, message, details)


def too_large(limit: int, what: str) -> ApiError:
    """413: `what` is larger than `limit` bytes."""
    return ApiError(413, f"{what} is larger than {limit} bytes", {"limit_bytes": limit})


def full(held: int, most: int) -> ApiError:
    """429: a project's uploads have no room for another one before older ones go."""
    return ApiError(
        429,
        f"the project's uploads have {held} of at most {most} bytes; each goes a day after its address has "
        "expired. Leave out what the crew does not need, or have CREWYARD_KEPT_UPLOADS raised",
        {"field": "size", "limit_bytes": most, "used_bytes": held},
        headers={"Retry-After": str(FULL_SECONDS)},
    )


def unavailable(message: str = "the service cannot answer right now; try again shortly") -> ApiError:
    """503: a part of the service is away; nothing was lost, the same request may succeed shortly."""
    return ApiError(503, message, headers={"Retry-After": str(RETRY_SECONDS)})


def internal(request_id: str) -> ApiError:
    """500: our fault; the details are in our log under the request's id only."""
    return ApiError(500, "the service failed; it is logged under this request id", {"request_id": request_id})


def of_kube(error: kube_errors.KubeError) -> ApiError | None:
    """What a refusal of the apiserver means to a caller; None where it is our own fault."""
    if isinstance(error, kube_errors.Invalid):
        causes = list(error.details.get("causes") or ())
        fields = [field for cause in causes if (field := api_field(str(cause.get("field") or "")))]
        messages = [_cause_text(str(cause.get("message") or "")) for cause in causes] or [error.message]
        return invalid("; ".join(messages)[:2000], fields[0] if fields else None)
    if isinstance(error, kube_errors.AlreadyExists):
        return conflict("an object of this name exists already; choose another name")
    if isinstance(error, kube_errors.Conflict):
        return conflict("it was changed by somebody else meanwhile; read it again and repeat the request")
    if isinstance(error, kube_errors.NotFound):
        return not_found("it is gone")
    if isinstance(error, kube_errors.Unavailable | kube_errors.Expired):
        return unavailable("the Kubernetes API cannot be reached right now; try again shortly")
    return None


def api_field(path: str) -> str:
    """A field of an object as the API names it: `spec.source.git.secretRef` → `source.git.secret_ref`."""
    bare = re.sub(r"^spec\.?", "", "" if path == "<nil>" else path)
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1].lower(), bare)


def _cause_text(message: str) -> str:
    # CEL failures arrive as `Invalid value: "object": <our own sentence>`: the sentence is enough.
    return re.sub(r'^Invalid value: "[a-z]+": ', "", message)


def of_http(error: web.HTTPException) -> ApiError:
    """The answers that aiohttp itself gives, as ours."""
    status = error.status
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return ApiError(
            405,
            f"{error.method} is not possible here; use {allowed}",
            {"allowed": sorted(error.allowed_methods)},
            {"Allow": allowed},
        )
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return ApiError(413, "the request's body is too large")
    if status == 404:
        return not_found("there is nothing at this path; see the API's description for the paths there are")
    return ApiError(status, HTTPStatus(status).phrase.lower())
