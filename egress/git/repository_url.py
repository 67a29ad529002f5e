"""The addresses of repositories that are read at all: https, http and ssh, and nothing odd in them. Pure.

Called before anything is looked up or connected to, by controller.git.client, build.source.fetch_git and egress.relay.ssh_relay.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes, urlsplit, urlunsplit

PORTS = {"http": 80, "https": 443, "ssh": 22}
_MOST = 2048
_LETTERS = re.compile(r"[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+")
_HOST = re.compile(r"([A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
_SECRETS = "names and passwords belong into the Secret of source.git.secretRef"


@dataclass(frozen=True)
class Place:
    """Where a repository is: `user` only for ssh; `host` in lower case; `port` always."""

    scheme: str
    user: str
    host: str
    port: int
    path: str


def parse(url: str) -> Place:
    """The parts of an address. Raises ValueError with what is wrong with it, which shows nothing secret."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("the address has no valid host and port") from None
    if parts.scheme not in PORTS or not url.startswith(f"{parts.scheme}://"):
        raise ValueError("only https://, http:// and ssh:// addresses are read")
    if len(url) > _MOST:
        raise ValueError(f"the address has more than {_MOST} characters")
    if not _LETTERS.fullmatch(url):
        raise ValueError(
            "the address holds spaces, control characters or letters that are not percent-encoded"
        )
    user, host = parts.username or "", parts.hostname or ""
    if parts.password is not None or (user and parts.scheme != "ssh"):
        raise ValueError(f"the address holds a user or password; {_SECRETS}")
    if "@" in parts.netloc and not _USER.fullmatch(user):
        raise ValueError("the user in the address is no name")
    if not _HOST.fullmatch(parts.netloc.rpartition("@")[2]) or not host or port == 0:
        raise ValueError("the address has no valid host and port")
    if parts.scheme == "ssh" and (not parts.path.strip("/") or parts.query):
        raise ValueError("the address is not of the form ssh://git@host/path")
    if min(unquote_to_bytes(parts.path), default=32) < 32 or b"\x7f" in unquote_to_bytes(parts.path):
        raise ValueError("the path of the address holds control characters")
    return Place(parts.scheme, user, host, port or PORTS[parts.scheme], parts.path)


def shown(url: str) -> str:
    """`url` for people: without what may be a secret in it (user, password, query), printable, bounded."""
    try:
        parts = urlsplit(url)
        clean = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        clean = "(no address)"
    return harmless(clean)


def harmless(text: str, most: int = 300) -> str:
    """`text` from a stranger as one bounded line in which nothing moves a cursor or turns the direction."""
    line = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[: most + 1]
    )
    return line if len(line) <= most else f"{line[: most - 1]}…"
