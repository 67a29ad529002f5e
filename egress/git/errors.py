"""Classification of failed git operations. Pure.

libgit2 has few error codes, so its messages are matched (a test checks them against real servers); what the
relay observed takes precedence. Called by controller.git.remote and build.source.git_remote.
"""

from dataclasses import dataclass
from enum import Enum, auto

from egress.git.credentials import GitCredentials
from egress.git.known_hosts import pinned_keys
from egress.git.repository_url import parse
from egress.relay.relay import EgressRelay


class GitErrorKind(Enum):
    """Kinds of git errors; only UNAVAILABLE and TIMEOUT can pass without a change of configuration."""

    TOO_LARGE = auto()
    ADDRESS_REFUSED = auto()
    CERTIFICATE = auto()
    HOST_KEY_UNKNOWN = auto()
    HOST_KEY_CHANGED = auto()
    TIMEOUT = auto()
    HOST_NOT_FOUND = auto()
    AUTH = auto()
    IDENTITY = auto()
    REPOSITORY_NOT_FOUND = auto()
    NOT_GIT = auto()
    SHA256 = auto()
    COMMIT_NOT_FOUND = auto()
    UNAVAILABLE = auto()


@dataclass(frozen=True)
class GitFailure:
    """A classified error. `detail` comes from the relay: refused address, certificate or host key."""

    kind: GitErrorKind
    detail: str = ""


def classify(error: Exception, url: str, credentials: GitCredentials, relay: EgressRelay) -> GitFailure:
    """Classify `error`, which pygit2 raised for `url` through `relay`."""
    text = str(error)
    if relay.size_exceeded:
        return GitFailure(GitErrorKind.TOO_LARGE)
    if relay.refused_addresses:
        return GitFailure(GitErrorKind.ADDRESS_REFUSED, relay.refused_addresses[0])
    if relay.certificate_errors:
        return GitFailure(GitErrorKind.CERTIFICATE, relay.certificate_errors[0])
    if "ssh hostkey" in text and relay.host_key:
        server = parse(url)
        pinned = pinned_keys(credentials.known_hosts, server.host, server.port)
        kind = GitErrorKind.HOST_KEY_CHANGED if pinned else GitErrorKind.HOST_KEY_UNKNOWN
        return GitFailure(
            kind, f"{relay.host_key.fingerprint} ({relay.host_key.algorithm or 'of no known kind'})"
        )
    if relay.deadline.expired or relay.deadline.seconds_left() <= 0:
        return GitFailure(GitErrorKind.TIMEOUT)
    if relay.unresolved_hosts:
        return GitFailure(GitErrorKind.HOST_NOT_FOUND)
    return GitFailure(classify_text(text))


def keyscan_command(url: str) -> str:
    """Return the command that prints the host keys of the server at `url`."""
    server = parse(url)
    port = "" if server.port == 22 else f"-p {server.port} "
    return f"ssh-keyscan {port}{server.host}"


_NO_COMMIT_IDS = "cannot fetch a specific object"
_COMMIT_REFUSED = ("not our ref", "unadvertised object", "unexpected packet type", _NO_COMMIT_IDS)
"""The third is libgit2's message when the remote itself refuses a commit."""
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
_KIND_TEXTS = (
    (GitErrorKind.IDENTITY, ("private key file", "unable to parse", "unsupported private key")),
    (GitErrorKind.AUTH, _DENIED),
    (GitErrorKind.SHA256, ("remote object format",)),
    (GitErrorKind.COMMIT_NOT_FOUND, _COMMIT_REFUSED),
    (
        GitErrorKind.REPOSITORY_NOT_FOUND,
        (*(f"status code: {code}" for code in (400, 404, 405, 406, 410)), *_ABSENT),
    ),
    (
        GitErrorKind.NOT_GIT,
        ("content-type", "invalid http response", "bad packet", "dumb http", "invalid packet"),
    ),
)


def classify_text(text: str) -> GitErrorKind:
    """Classify a libgit2 message."""
    lowered = text.lower()
    return next(
        (kind for kind, fragments in _KIND_TEXTS if any(fragment in lowered for fragment in fragments)),
        GitErrorKind.UNAVAILABLE,
    )


def refuses_commit_ids(text: str) -> bool:
    """Return whether the message says that the remote serves named refs only, not commit ids."""
    return _NO_COMMIT_IDS in text.lower()
