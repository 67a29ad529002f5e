"""Masking of secrets in pip's output. Called by build.wheels.download."""

import base64
import re
from collections.abc import Iterable
from urllib.parse import quote, unquote, urlsplit

_REPLACEMENT = "***"
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>,)]+", re.IGNORECASE)


class PipOutputMask:
    """Mask for the URLs of private indexes and their credentials."""

    def __init__(self, addresses: Iterable[str], username: str, password: str) -> None:
        secrets = {password}
        parts_to_hide = set()
        for address in filter(None, addresses):
            parts = urlsplit(address)
            user, _, password_part = parts.netloc.rpartition("@")[0].partition(":")
            # A token is often given as the user name.
            secrets |= {password_part, user if not password_part else ""}
            parts_to_hide |= {address, parts.path.rstrip("/"), parts.hostname or ""}
            username = username or unquote(user)
        pairs = [f"{username}:{secret}" for secret in secrets if secret]
        secrets |= {base64.b64encode(pair.encode()).decode() for pair in pairs}
        secrets |= {
            variant for secret in set(secrets) for variant in (quote(secret, safe=""), unquote(secret))
        }
        hidden = {secret for secret in secrets if secret} | {part for part in parts_to_hide if len(part) > 1}
        # Longest first: a shorter match would leave the rest of a longer secret.
        ordered = sorted(hidden, key=lambda text: (-len(text), text))
        self._pattern = re.compile("|".join(re.escape(text) for text in ordered)) if ordered else None

    def text(self, text: str) -> str:
        """Return `text` without credentials; of a URL only the last path segment remains."""
        text = _ADDRESS.sub(_shorten, text)
        return self._pattern.sub(_REPLACEMENT, text) if self._pattern else text


def _shorten(address: re.Match[str]) -> str:
    path = address[0].partition("://")[2].partition("?")[0].partition("#")[0]
    last = path.partition("/")[2].rstrip("/").rpartition("/")[2]
    return f"<index>/{last}" if last else "<index>"
