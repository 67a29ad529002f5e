"""Which port serves the calls of pods. Pure. Called by the middlewares of API server and controller."""

from dataclasses import dataclass

_PREFIX = "/internal/"


@dataclass(frozen=True)
class PortRefusal:
    """Why a port does not serve a path: status and message."""

    status: int
    message: str


def refusal(path: str, secure: bool, plain: bool) -> PortRefusal | None:
    """Return why this port does not serve a path; `plain`: pods may call without TLS."""
    if secure:
        if path.startswith(_PREFIX):
            return None
        return PortRefusal(404, "this port serves the calls of pods only; use the address of the API")
    if plain or not path.startswith(_PREFIX):
        return None
    return PortRefusal(
        403,
        "the calls of pods are served by TLS only (CREWYARD_INTERNAL_PLAIN is off); an image from before TLS "
        "needs a new deployment",
    )
