"""Status that a private index answers, which pip does not report. Called by build.wheels.download."""

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


def index_status(address: str) -> int | None:
    """Return what the index at `address` (with credentials) answers; None without an answer. One try."""
    parts = urlsplit(address)
    user, _, host = parts.netloc.rpartition("@")
    if parts.scheme not in ("http", "https"):
        return None
    url = urlunsplit(parts._replace(netloc=host, path=parts.path.rstrip("/") + "/"))
    request = urllib.request.Request(url)
    if user:
        name, _, password = user.partition(":")
        pair = f"{unquote(name)}:{unquote(password)}".encode()
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
    try:
        with urllib.request.build_opener(_NoIndexRedirect).open(
            request, timeout=_TIMEOUT_SECONDS
        ) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except (OSError, ValueError):
        return None
