"""HTTP requests through an egress relay, each with its own byte limit.

Called by build.source.lfs.downloads.
"""

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from build.errors import InfrastructureError
from egress.addresses import AddressRules
from egress.git.repository_url import display_url, printable
from egress.relay.http_relay import HttpRelay

CONNECT_TIMEOUT_SECONDS = 10.0
IDLE_TIMEOUT_SECONDS = 60.0
_HEAD_BYTES = 256 << 10
_FORBIDDEN_HEADERS = ("host", "connection", "content-length", "transfer-encoding", "keep-alive")


class RequestRefused(Exception):
    """The server refuses the request, or this installation the server: a retry does not help."""


@contextmanager
def open_url(
    url: str,
    headers: Mapping[str, str],
    rules: AddressRules,
    ca: str,
    max_bytes: int,
    total_seconds: float,
    body: bytes | None = None,
) -> Iterator[http.client.HTTPResponse]:
    """Open `url`; only its server gets the header Authorization.

    Raises RequestRefused or InfrastructureError.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise RequestRefused(f"{display_url(url)} is not a plain http or https URL")
    relay = HttpRelay(
        rules,
        repository_url=url,
        ca=ca,
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        idle_timeout=IDLE_TIMEOUT_SECONDS,
        total_timeout=total_seconds,
        max_bytes=max_bytes + _HEAD_BYTES,
    )
    allowed = {name: value for name, value in headers.items() if name.lower() not in _FORBIDDEN_HEADERS}
    with relay:
        try:
            request = urllib.request.Request(relay.local_url(url), body, allowed)
            with _opener().open(request, timeout=IDLE_TIMEOUT_SECONDS) as response:
                yield response
        except urllib.error.HTTPError as error:
            error.close()
            problem = _relay_problem(relay)
            if problem:
                raise RequestRefused(problem) from None
            text = f"{display_url(url)} answers {error.code}"
            if error.code >= 500 or error.code in (408, 429):
                raise InfrastructureError(f"git LFS: {text}") from None
            raise RequestRefused(text) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            problem = _relay_problem(relay)
            if problem or isinstance(error, ValueError | http.client.InvalidURL):
                raise RequestRefused(problem or printable(str(error))) from None
            raise InfrastructureError(
                f"git LFS: {display_url(url)} could not be read ({printable(str(error))})"
            ) from None


def _relay_problem(relay: HttpRelay) -> str:
    """Return why the relay did not connect, where a retry does not help."""
    if relay.refused_addresses:
        return f"{relay.refused_addresses[0]}, and this installation does not fetch from it"
    if relay.certificate_errors:
        return f"invalid certificate of {relay.certificate_errors[0]}"
    if relay.unresolved_hosts:
        return f"cannot resolve {printable(relay.unresolved_hosts[0])}"
    return "the server sends more than it announced" if relay.size_exceeded else ""


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener for http alone, without this machine's proxies; the relay rewrites redirects."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener
