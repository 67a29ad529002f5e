"""Response headers. Pure. Called by `api.openapi.document`."""

from typing import Any

_COUNT = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}


def _header(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "schema": schema}


HEADERS: dict[str, dict[str, Any]] = {
    "X-Request-Id": _header("The id of the request, of the client or generated.", {**_TEXT, "minLength": 1}),
    "X-RateLimit-Limit": _header("Requests per minute.", _COUNT),
    "X-RateLimit-Remaining": _header("Requests left in this minute.", _COUNT),
    "X-RateLimit-Reset": _header("When the next minute begins, in epoch seconds.", _COUNT),
    "Retry-After": _header("Seconds after which the same request may succeed.", _COUNT),
    "WWW-Authenticate": _header("The authentication scheme.", _TEXT),
    "Location": _header("The URL of the created object.", _TEXT),
    "Link": _header("URLs of the first, previous, next and last page (RFC 8288).", _TEXT),
    "Allow": _header("The allowed methods.", _TEXT),
    "ETag": _header("The entity tag of the bytes, for If-None-Match and If-Range.", _TEXT),
    "Accept-Ranges": _header("Byte ranges are supported.", {"const": "bytes"}),
    "Content-Range": _header("The range of this part, or the total size.", _TEXT),
    "Content-Disposition": _header("The name of the file.", _TEXT),
    "Content-Security-Policy": _header("What the page may load: itself and this document.", _TEXT),
    "Preference-Applied": _header("The preference of the request that was applied, such as wait=10.", _TEXT),
    "Cache-Control": _header("Whether the response may be cached.", _TEXT),
}  # fmt: skip
ALWAYS = ("X-Request-Id",)
LIMITED = (*ALWAYS, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
"""On every response below /v1."""
BY_ERROR_STATUS: dict[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    416: ("Content-Range",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}


def for_response(names: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    """Return the header objects of a response."""
    required = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    # A reference cannot override `required`, so optional headers are inlined.
    return required | {name: {**HEADERS[name], "required": False} for name in optional}


def components() -> dict[str, Any]:
    """Return all headers, for references."""
    return {name: {**header, "required": True} for name, header in HEADERS.items()}
