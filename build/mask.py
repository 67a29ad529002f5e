"""Takes what must not be known out of a program's output. Called by build.wheels.download."""

import base64
import re
from collections.abc import Iterable
from urllib.parse import quote, unquote, urlsplit

_HIDDEN = "***"
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>,)]+", re.IGNORECASE)


class Mask:
    """Knows the addresses of private indexes and the credentials for them."""

    def __init__(self, addresses: Iterable[str], username: str, password: str) -> None:
        secrets = {password}
        places = set()
        for address in filter(None, addresses):
            parts = urlsplit(address)
            user, _, word = parts.netloc.rpartition("@")[0].partition(":")
            # A token often stands in the place of the user's name.
            secrets |= {word, user if not word else ""}
            places |= {address, parts.path.rstrip("/"), parts.hostname or ""}
            username = username or unquote(user)
        pairs = [f"{username}:{word}" for word in secrets if word]
        secrets |= {base64.b64encode(pair.encode()).decode() for pair in pairs}
        secrets |= {changed for word in set(secrets) for changed in (quote(word, safe=""), unquote(word))}
        known = {word for word in secrets if word} | {place for place in places if len(place) > 1}
        # The longest first, so that no part of one is left by another.
        words = sorted(known, key=lambda word: (-len(word), word))
        self._known = re.compile("|".join(re.escape(word) for word in words)) if words else None

    def text(self, text: str) -> str:
        """`text` without credentials; of an address only the last part of its path stays."""
        text = _ADDRESS.sub(_shortened, text)
        return self._known.sub(_HIDDEN, text) if self._known else text


def _shortened(address: re.Match[str]) -> str:
    path = address[0].partition("://")[2].partition("?")[0].partition("#")[0]
    last = path.partition("/")[2].rstrip("/").rpartition("/")[2]
    return f"<index>/{last}" if last else "<index>"
