"""Content negotiation by the Accept header. Pure. Called by `api.routing.endpoint`."""

from collections.abc import Sequence

from api import errors

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
TEXT = "text/plain"
CSV = "text/csv"
JSON_LINES = "application/x-ndjson"
ANY = "*/*"


def choose(accept: str | None, offered: Sequence[str]) -> str:
    """Return the offered media type that the header prefers. Raises a 406.

    Of equal ones it is the one that the header names, rather than one that `*/*` allows; else the first.

    The first offered type is the default. `*/*` in `offered` (a file whose type is determined later) accepts
    any header. Clients send `application/json` by default, so a header that accepts JSON gets the default
    type of an operation without JSON.
    """
    if not accept or not accept.strip() or ANY in offered:
        return offered[0]
    ranges = [_range(part) for part in accept.split(",") if part.strip()]
    best = max(offered, key=lambda media_type: _rating(media_type, ranges))
    is_refused = _rating(best, ranges)[0] <= 0
    if is_refused and JSON not in offered and _rating(JSON, ranges)[0] > 0:
        return offered[0]
    if is_refused:
        raise errors.HttpApiError(
            406,
            "the response is available as " + " or ".join(offered) + "; name one of them in Accept",
            {"available": list(offered)},
        )
    return best


def _range(part: str) -> tuple[str, float]:
    kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                quality = 0.0
            # `q=nan` parses as a float and compares greater than nothing; it counts as 0.
            return kind, min(quality, 1.0) if quality > 0 else 0.0
    return kind, 1.0


def _rating(kind: str, ranges: Sequence[tuple[str, float]]) -> tuple[float, int]:
    """Return the quality of a media type, and how specific the range is that gives it."""
    # The most specific range decides (RFC 9110, 12.5.1), so "text/plain;q=0, */*" excludes text.
    for specificity, pattern in ((3, kind), (2, kind.partition("/")[0] + "/*"), (1, ANY)):
        qualities = [quality for name, quality in ranges if name == pattern]
        if qualities:
            return max(qualities), specificity
    return 0.0, 0
