"""Strict parser of repository URLs: https, http and ssh only. Pure.

Called before any name resolution or connection, by controller.git.client, build.source.fetch_git and
egress.relay.ssh_relay.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes, urlsplit, urlunsplit

PORTS = {"http": 80, "https": 443, "ssh": 22}
_MAX_LENGTH = 2048
_URL_CHARACTERS = re.compile(r"[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+")
_HOST = re.compile(r"([A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
_SECRETS = "put user name and password into the Secret of source.git.secretRef"


@dataclass(frozen=True)
class RepositoryUrl:
    """Parts of a repository URL: `user` only for ssh; `host` in lower case; `port` is always set."""

    scheme: str
    user: str
    host: str
    port: int
    path: str


def parse(url: str) -> RepositoryUrl:
    """Parse `url`. Raises ValueError with the problem; the text contains no secret."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("the URL has no valid host and port") from None
    if parts.scheme not in PORTS or not url.startswith(f"{parts.scheme}://"):
        raise ValueError("only https://, http:// and ssh:// URLs are supported")
    if len(url) > _MAX_LENGTH:
        raise ValueError(f"the URL has more than {_MAX_LENGTH} characters")
    if not _URL_CHARACTERS.fullmatch(url):
        raise ValueError(
            "the URL contains spaces, control characters or characters that are not percent-encoded"
        )
    user, host = parts.username or "", parts.hostname or ""
    if parts.password is not None or (user and parts.scheme != "ssh"):
        raise ValueError(f"the URL contains a user or password; {_SECRETS}")
    if "@" in parts.netloc and not _USER.fullmatch(user):
        raise ValueError("the user in the URL is invalid")
    if not _HOST.fullmatch(parts.netloc.rpartition("@")[2]) or not host or port == 0:
        raise ValueError("the URL has no valid host and port")
    if parts.scheme == "ssh" and (not parts.path.strip("/") or parts.query):
        raise ValueError("the URL does not have the form ssh://git@host/path")
    if min(unquote_to_bytes(parts.path), default=32) < 32 or b"\x7f" in unquote_to_bytes(parts.path):
        raise ValueError("the path of the URL contains control characters")
    return RepositoryUrl(parts.scheme, user, host, port or PORTS[parts.scheme], parts.path)


def display_url(url: str) -> str:
    """Return `url` for messages: without user, password and query, printable and bounded."""
    try:
        parts = urlsplit(url)
        clean = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        clean = "(invalid URL)"
    return printable(clean)


def printable(text: str, max_length: int = 300) -> str:
    """Return untrusted `text` as one bounded line without control or bidirectional characters."""
    line = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in text[: max_length + 1]
    )
    return line if len(line) <= max_length else f"{line[: max_length - 1]}…"
