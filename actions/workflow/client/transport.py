"""One HTTP exchange: redirects are told, not followed (the key would go along); proxies as usual.

Called by `actions.workflow.client.api`.
"""

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPResponse
from typing import Any, Protocol, cast

from actions.workflow.errors import Failed, Moved, Refusal

TROUBLE = (OSError, http.client.HTTPException)
"""What a broken connection raises."""
_ERROR_BYTES = 64 * 1024
_AGENT = "crewyard-action/1"


class Body(Protocol):
    """What is sent piece by piece; its length is in the headers."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes, none at the end."""
        ...


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follows none; urllib then raises the answer itself."""


_opener = urllib.request.build_opener(_NoRedirect)


def exchange(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | Body | None = None,
    seconds: float = 30.0,
) -> HTTPResponse:
    """The answer, a success; the caller closes it. `seconds` bounds each wait for the network.

    Raises Refusal for another answer, one of TROUBLE for a connection that fails, Moved where a GET is to be
    repeated at another address, Failed for any other redirect.
    """
    if not url.lower().startswith(("http://", "https://")):
        raise Failed(f"The address of {method} is no http address.")
    request = urllib.request.Request(
        url, data=cast(Any, body), method=method, headers={"User-Agent": _AGENT, **headers}
    )
    try:
        answer = _opener.open(request, timeout=max(0.1, seconds))
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(error, method, request) from None
    except ValueError as error:
        raise Failed(f"The address of {method} cannot be used: {error}.") from None
    return cast(HTTPResponse, answer)


def _refusal(error: urllib.error.HTTPError, method: str, request: urllib.request.Request) -> Exception:
    if 300 <= error.code < 400:
        message = (
            f"{request.host} answered {method} with a redirect ({error.code}), which is not followed. "
            "Is the input api-url the API's own address?"
        )
        there = str(error.headers.get("Location") or "")
        # Never from https to what others can read.
        if error.code == 307 and method == "GET" and there.startswith(("https://", f"{request.type}://")):
            return Moved(message, there)
        return Failed(message)
    raw = error.read(_ERROR_BYTES)
    code, message = "http", raw.decode("utf-8", "replace").strip()[:300] or str(error.reason)
    try:
        found = json.loads(raw)["error"]
        code, message = str(found["code"]), str(found["message"])
    except (ValueError, KeyError, TypeError):
        pass  # A proxy in between answered.
    return Refusal(error.code, code, message, _seconds(error.headers.get("Retry-After")))


def _seconds(header: str | None) -> float | None:
    """A Retry-After in seconds; its other form, a date, counts as none."""
    text = (header or "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def fetch_token(url: str, bearer: str) -> bytes:
    """What the runner's token service answers; tried three times, for a hiccup must not fail a job."""
    for tries_left in (2, 1, 0):
        try:
            headers = {"Authorization": f"Bearer {bearer}", "Accept": "application/json"}
            with exchange("GET", url, headers) as answer:
                return answer.read(_ERROR_BYTES)
        except Refusal as refusal:
            if not refusal.passing or not tries_left:
                raise Failed(f"GitHub refused an OIDC token: {refusal.message} ({refusal.status}).") from None
        except TROUBLE as trouble:
            if not tries_left:
                raise Failed(f"GitHub's token service cannot be reached: {trouble}.") from None
        time.sleep(1.0)
    raise AssertionError("the last try returns or raises")
