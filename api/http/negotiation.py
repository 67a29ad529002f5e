"""Which media type an answer has, by the request's Accept header. Pure. Called by `api.routing.endpoint`."""

from collections.abc import Sequence

from api import errors

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
TEXT = "text/plain"
CSV = "text/csv"
ANY = "*/*"


def choose(accept: str | None, offered: Sequence[str]) -> str:
    """The offered type that the header prefers; of equals the first offered. Raises a 406.

    The first offered is the default. `*/*` among the offered (a file, whose
    type is only known later) takes any header.
    """
    if not accept or not accept.strip() or ANY in offered:
        return offered[0]
    ranges = [_range(part) for part in accept.split(",") if part.strip()]
    rated = [(_quality(kind, ranges), kind) for kind in offered]
    best = max(quality for quality, _ in rated)
    if best <= 0:
        raise errors.ApiError(
            406,
            "the answer comes as " + " or ".join(offered) + "; name it in Accept",
            {"available": list(offered)},
        )
    return next(kind for quality, kind in rated if quality == best)


def _range(part: str) -> tuple[str, float]:
    kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                quality = 0.0
            # Not a number (`q=nan` is one to float) is greater than nothing.
            return kind, min(quality, 1.0) if quality > 0 else 0.0
    return kind, 1.0


def _quality(kind: str, ranges: Sequence[tuple[str, float]]) -> float:
    # The most specific range decides (RFC 9110, 12.5.1), so that "text/plain;q=0, */*" excludes text.
    for wanted in (kind, kind.partition("/")[0] + "/*", ANY):
        found = [quality for name, quality in ranges if name == wanted]
        if found:
            return max(found)
    return 0.0
