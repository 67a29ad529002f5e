"""Check whether a private index denies access, which pip does not report. Called by build.wheels.download."""

import base64
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

_TIMEOUT_SECONDS = 15.0


class _NoIndexRedirect(urllib.request.HTTPRedirectHandler):
    """Follow no redirect: another host must not get the credential."""

    def redirect_request(self, *arguments: Any, **more: Any) -> None:
        """Return None: the request ends with the redirect itself."""


def is_denied(address: str) -> bool:
    """Return whether the index at `address` (with credentials) answers 401 or 403; one try."""
    parts = urlsplit(address)
    user, _, host = parts.netloc.rpartition("@")
    if parts.scheme not in ("http", "https"):
        return False
    url = urlunsplit(parts._replace(netloc=host, path=parts.path.rstrip("/") + "/"))
    request = urllib.request.Request(url)
    if user:
        name, _, password = user.partition(":")
        pair = f"{unquote(name)}:{unquote(password)}".encode()
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
    try:
        with urllib.request.build_opener(_NoIndexRedirect).open(request, timeout=_TIMEOUT_SECONDS):
            return False
    except urllib.error.HTTPError as error:
        return error.code in (401, 403)
    except (OSError, ValueError):
        return False
