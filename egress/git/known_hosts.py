"""Host keys that a `known_hosts` text pins for a server, in all formats that OpenSSH writes. Pure.

Called by egress.git.remote and egress.git.errors. Supports hashed names, patterns, ports and `@revoked`;
skips `@cert-authority` lines, because libgit2 does not support host certificates.
"""

import base64
import binascii
import fnmatch
import hashlib
import hmac

from egress.git.host_key import HostKey

_SSH_PORT = 22


def pinned_keys(text: str, host: str, port: int) -> tuple[HostKey, ...]:
    """Return the keys of `host` at `port`; entries without a port apply where none names the port."""
    host = host.lower()
    lines = [line for line in map(_parse_line, text.splitlines()) if line]
    for name in [host] if port == _SSH_PORT else [f"[{host}]:{port}", host]:
        matches = [(marker, key) for marker, names, key in lines if _matches_names(names, name)]
        revoked = {key for marker, key in matches if marker == "@revoked"}
        keys = tuple(dict.fromkeys(key for marker, key in matches if not marker and key not in revoked))
        if matches:
            return keys
    return ()


def known_hosts_line(host: str, port: int, key: HostKey) -> str:
    """Return the line of a known_hosts file that pins `key`."""
    return f"[{host}]:{port} {key.algorithm} {base64.b64encode(key.blob).decode()}\n"


def _parse_line(text: str) -> tuple[str, str, HostKey] | None:
    """Return marker, names and key of a line; None for a comment or a malformed line."""
    fields = text.split()
    marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
    if len(fields) < 3 or fields[0].startswith("#") or marker not in ("", "@revoked"):
        return None
    try:
        key = HostKey(base64.b64decode(fields[2], validate=True))
    except (binascii.Error, ValueError):
        return None
    return (marker, fields[0], key) if key.algorithm == fields[1] else None


def _matches_names(names: str, name: str) -> bool:
    """Return whether a line's names match `name`; a pattern that starts with `!` excludes."""
    matched = False
    for pattern in names.split(","):
        negated = pattern.startswith("!")
        if _matches(pattern.removeprefix("!"), name):
            if negated:
                return False
            matched = True
    return matched


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("|1|"):
        return _matches_hash(pattern, name)
    # The brackets around a host with a port are literal, not a character set.
    return fnmatch.fnmatchcase(name, pattern.lower().replace("[", "[[]"))


def _matches_hash(pattern: str, name: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in pattern[3:].split("|"))
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)
