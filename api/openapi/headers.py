"""The headers of answers, described once. Pure. Called by `api.openapi.document`."""

from typing import Any

_COUNT = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}


def _header(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "schema": schema}


HEADERS: dict[str, dict[str, Any]] = {
    "X-Request-Id": _header("The request's id: the one that was sent, or ours.", {**_TEXT, "minLength": 1}),
    "X-RateLimit-Limit": _header("Requests a minute.", _COUNT),
    "X-RateLimit-Remaining": _header("Requests left in this minute.", _COUNT),
    "X-RateLimit-Reset": _header("When the next minute begins, in epoch seconds.", _COUNT),
    "Retry-After": _header("Seconds after which the same request may succeed.", _COUNT),
    "WWW-Authenticate": _header("How to show a key.", _TEXT),
    "Location": _header("The address of what was made.", _TEXT),
    "Link": _header("Addresses of the first, previous, next and last page (RFC 8288).", _TEXT),
    "Allow": _header("The methods there are.", _TEXT),
    "ETag": _header("The validator of the bytes, for If-None-Match and If-Range.", _TEXT),
    "Accept-Ranges": _header("That ranges of bytes are served.", {"const": "bytes"}),
    "Content-Range": _header("Which part of the whole this is, or how long the whole is.", _TEXT),
    "Content-Disposition": _header("The file's name.", _TEXT),
    "Content-Security-Policy": _header("What the page may load: itself and the description.", _TEXT),
    "Cache-Control": _header("Whether it may be kept.", _TEXT),
}  # fmt: skip
ALWAYS = ("X-Request-Id",)
LIMITED = (*ALWAYS, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
"""On every answer below /v1."""
OF_ERROR: dict[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    416: ("Content-Range",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}


def of_answer(names: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    """The headers of one answer, as the document has them."""
    required = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    # A reference cannot say that this answer may go without, so these are written out.
    return required | {name: {**HEADERS[name], "required": False} for name in optional}


def components() -> dict[str, Any]:
    """All headers, for references."""
    return {name: {**header, "required": True} for name, header in HEADERS.items()}
