"""Whether a private index lets us in, which pip does not tell. Called by build.wheels.download after a failure."""

import base64
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

_TIMEOUT = 15.0


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: another host has no claim to the credential."""

    def redirect_request(self, *arguments: Any, **more: Any) -> None:
        """None ends the request with the redirect itself."""


def is_denied(address: str) -> bool:
    """Whether the index at `address`, which may hold name and password, answers 401 or 403; one try."""
    parts = urlsplit(address)
    user, _, host = parts.netloc.rpartition("@")
    if parts.scheme not in ("http", "https"):
        return False
    plain = urlunsplit(parts._replace(netloc=host, path=parts.path.rstrip("/") + "/"))
    request = urllib.request.Request(plain)
    if user:
        name, _, password = user.partition(":")
        pair = f"{unquote(name)}:{unquote(password)}".encode()
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=_TIMEOUT):
            return False
    except urllib.error.HTTPError as error:
        return error.code in (401, 403)
    except (OSError, ValueError):
        return False
