"""Which host keys a `known_hosts` text pins for a server, in all the forms that OpenSSH writes. Pure.

Called by egress.git.remote. Hashed names, patterns, ports and `@revoked` are understood; lines of
certificate authorities are passed over, since libgit2 does not speak host certificates.
"""

import base64
import binascii
import fnmatch
import hashlib
import hmac

from egress.git.host_key import HostKey

_SSH = 22


def pinned(text: str, host: str, port: int) -> tuple[HostKey, ...]:
    """The keys of `host` at `port`. Those without a port stand in where there are none with it."""
    host = host.lower()
    lines = [line for line in map(_parsed, text.splitlines()) if line]
    for name in [host] if port == _SSH else [f"[{host}]:{port}", host]:
        mine = [(marker, key) for marker, names, key in lines if _named(names, name)]
        revoked = {key for marker, key in mine if marker == "@revoked"}
        found = tuple(dict.fromkeys(key for marker, key in mine if not marker and key not in revoked))
        if mine:
            return found
    return ()


def line(host: str, port: int, key: HostKey) -> str:
    """The line of a file that pins `key`."""
    return f"[{host}]:{port} {key.kind} {base64.b64encode(key.blob).decode()}\n"


def _parsed(text: str) -> tuple[str, str, HostKey] | None:
    """Marker, names and key of a line; None for a comment and what is no line of the format."""
    words = text.split()
    marker = words.pop(0) if words and words[0].startswith("@") else ""
    if len(words) < 3 or words[0].startswith("#") or marker not in ("", "@revoked"):
        return None
    try:
        key = HostKey(base64.b64decode(words[2], validate=True))
    except (binascii.Error, ValueError):
        return None
    return (marker, words[0], key) if key.kind == words[1] else None


def _named(names: str, name: str) -> bool:
    """Whether a line's names mean `name`; one that begins with `!` excludes."""
    meant = False
    for pattern in names.split(","):
        without = pattern.startswith("!")
        if _matches(pattern.removeprefix("!"), name):
            if without:
                return False
            meant = True
    return meant


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("|1|"):
        return _hashed(pattern, name)
    # The brackets of a port are letters here, not a set of them.
    return fnmatch.fnmatchcase(name, pattern.lower().replace("[", "[[]"))


def _hashed(pattern: str, name: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in pattern[3:].split("|"))
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)
