"""What went wrong on a way out to a repository, in one word. Pure.

libgit2 has few codes of its own, so its texts are read, which a test holds against real servers; what the
way itself has seen comes first. Called by controller.git.remote and build.source.fetch_git.
"""

from dataclasses import dataclass
from enum import Enum, auto

from egress.git.credentials import Access
from egress.git.known_hosts import pinned
from egress.git.repository_url import parse
from egress.relay.relay import Way


class Kind(Enum):
    """The kinds of trouble; all but AWAY and LATE stay until somebody changes something."""

    TOO_LARGE = auto()
    ADDRESS = auto()
    CERTIFICATE = auto()
    HOST_KEY_UNKNOWN = auto()
    HOST_KEY_CHANGED = auto()
    LATE = auto()
    NO_HOST = auto()
    AUTH = auto()
    IDENTITY = auto()
    REPOSITORY = auto()
    NO_GIT = auto()
    SHA256 = auto()
    COMMIT = auto()
    AWAY = auto()


@dataclass(frozen=True)
class Trouble:
    """`detail` is what the way knows besides: which address and why, whose certificate, which host key."""

    kind: Kind
    detail: str = ""


def trouble(error: Exception, url: str, access: Access, way: Way) -> Trouble:
    """What `error` means, raised by pygit2 while it talked to `url` through `way`."""
    text = str(error)
    if way.exceeded:
        return Trouble(Kind.TOO_LARGE)
    if way.refusals:
        return Trouble(Kind.ADDRESS, way.refusals[0])
    if way.untrusted:
        return Trouble(Kind.CERTIFICATE, way.untrusted[0])
    if "ssh hostkey" in text and way.shown:
        place = parse(url)
        known = pinned(access.known_hosts, place.host, place.port)
        kind = Kind.HOST_KEY_CHANGED if known else Kind.HOST_KEY_UNKNOWN
        return Trouble(kind, f"{way.shown.fingerprint} ({way.shown.kind or 'of no known kind'})")
    if way.deadline.over or way.deadline.left() <= 0:
        return Trouble(Kind.LATE)
    if way.unknown:
        return Trouble(Kind.NO_HOST)
    return Trouble(told(text))


def keyscan(url: str) -> str:
    """The command that prints the host keys of the server at `url`."""
    place = parse(url)
    port = "" if place.port == 22 else f"-p {place.port} "
    return f"ssh-keyscan {port}{place.host}"


_CANNOT_ASK = "cannot fetch a specific object"
_REFUSED = ("not our ref", "unadvertised object", "unexpected packet type", _CANNOT_ASK)
"""The third is what libgit2 makes of the remote's own refusal of a commit."""
_DENIED = (
    "status code: 401",
    "status code: 403",
    "authenticat",
    "credential",
    "permission denied",
    "access denied",
)
_ABSENT = (
    "not found",
    "could not be found",
    "cannot find repository",
    "does not appear to be a git repository",
    "no such file",
    "does not exist",
)
_IN_TEXT = (
    (Kind.IDENTITY, ("private key file", "unable to parse", "unsupported private key")),
    (Kind.AUTH, _DENIED),
    (Kind.SHA256, ("remote object format",)),
    (Kind.COMMIT, _REFUSED),
    (Kind.REPOSITORY, (*(f"status code: {code}" for code in (400, 404, 405, 406, 410)), *_ABSENT)),
    (Kind.NO_GIT, ("content-type", "invalid http response", "bad packet", "dumb http", "invalid packet")),
)


def told(text: str) -> Kind:
    """What one of libgit2's texts means."""
    low = text.lower()
    return next((kind for kind, words in _IN_TEXT if any(word in low for word in words)), Kind.AWAY)


def cannot_ask(text: str) -> bool:
    """Whether a text says that the remote gives named branches only."""
    return _CANNOT_ASK in text.lower()
