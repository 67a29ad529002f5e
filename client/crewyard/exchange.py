"""Request headers, response checks and retry decisions shared by both clients."""

import json
import math
import time
from typing import Any, TypeVar

import httpx

from crewyard import errors, retry
from crewyard.call import Call
from crewyard.models import Event
from crewyard.settings import Settings, SettingsError
from crewyard.sse import SSEMessage

T = TypeVar("T")
DEFAULT_TIMEOUT_SECONDS = 30.0
STREAM_TIMEOUT_SECONDS = 45.0
"""The service sends a keep-alive on a stream every 15 s."""


ENDED = ("succeeded", "failed", "canceled")
"""Statuses that a run never leaves."""
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
"""Failures before a request is sent: the service cannot have received it."""
MAX_WAIT_SECONDS = 25
"""The service would hold a response for 60 s, but proxies cut requests that are silent for 30 s or 60 s."""


def deadline(timeout: float | None) -> float:
    """Return the monotonic time after `timeout` seconds; infinity for None."""
    return math.inf if timeout is None else time.monotonic() + timeout


def next_wait(deadline: float) -> int:
    """Return the seconds of the next request that waits: whole, at least 1."""
    return int(max(1, min(MAX_WAIT_SECONDS, deadline - time.monotonic())))


def is_over(deadline: float) -> bool:
    """Return whether the deadline has passed."""
    return time.monotonic() >= deadline


def ignore_wait(_problem: errors.CrewyardError, _seconds: float) -> None:
    """Ignore the waits between retries."""


def headers(settings: Settings, accept: str = "application/json") -> dict[str, str]:
    """Return the headers of every call."""
    return {"Authorization": f"Bearer {settings.api_key}", "Accept": accept, "User-Agent": "crewyard-client"}


def stream_headers(settings: Settings, last_id: str) -> dict[str, str]:
    """Return the headers of a stream that resumes after the message `last_id`."""
    fields = {**headers(settings, "text/event-stream"), "Cache-Control": "no-store"}
    return {**fields, "Last-Event-ID": last_id} if last_id else fields


def timeouts(seconds: float) -> httpx.Timeout:
    """Return the httpx timeouts: at most 10 s to connect, `seconds` for every other wait."""
    return httpx.Timeout(seconds, connect=min(10.0, seconds))


def arguments(settings: Settings, call: Call[Any]) -> dict[str, Any]:
    """Return httpx's keyword arguments for a call. Raises WrongValue if its body is not JSON."""
    options: dict[str, Any] = {
        "method": call.method,
        "url": settings.url + call.path,
        "headers": {**headers(settings), **call.headers},
    }
    if call.wait_seconds:
        options["timeout"] = timeouts(DEFAULT_TIMEOUT_SECONDS + call.wait_seconds)
    if call.query:
        options["params"] = dict(call.query)
    if call.body is not None:
        options["content"] = _json(call.body)
    if call.method in ("POST", "PUT", "PATCH"):
        options["headers"]["Content-Type"] = "application/json"
    return options


def _json(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise errors.WrongValue("a text has a lone surrogate, which UTF-8 cannot encode") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.WrongValue(f"the value cannot be sent as JSON: {error}") from None


def result(call: Call[T], response: httpx.Response, retried: bool) -> T:
    """Return the result of a response that was read. Raises ApiError, CrewyardError."""
    if retried and call.method == "DELETE" and response.status_code == 404:
        return call.read(None)  # An earlier attempt, whose response was lost, deleted it.
    check(response)
    if response.status_code == 204:
        return call.read(None)
    try:
        return call.read(response.json())
    except (ValueError, KeyError, TypeError):
        raise errors.CrewyardError(
            f"{response.request.url.host} did not respond like Crewyard; check CREWYARD_URL"
        ) from None


def check(response: httpx.Response) -> None:
    """Raise the ApiError of an error response; its body must have been read."""
    if response.is_success:
        return
    try:
        body = response.json()
    except ValueError:
        body = None
    raise errors.error_for_response(response.status_code, response.headers, body, response.request.url.host)


def check_type(response: httpx.Response, expected: str) -> None:
    """Raise CrewyardError if the response has another media type, such as a proxy's sign-in page."""
    kind = response.headers.get("Content-Type", "")
    if kind.partition(";")[0].strip().lower() != expected:
        raise errors.CrewyardError(
            f"{response.request.url.host} did not send {expected}, but {kind}; check CREWYARD_URL"
        )


def retry_delay(failure: Exception, failures: int, repeatable: bool) -> float:
    """Return the seconds until the next attempt; raise `failure` if a retry is pointless or not safe."""
    if failures >= retry.MAX_ATTEMPTS or not repeatable:
        raise failure
    if isinstance(failure, errors.ApiError):
        if not failure.passing or failure.code == "queue_full":
            raise failure
        return retry.pause(failures, failure.retry_after)
    return retry.pause(failures, None)


def keep_waiting(failure: errors.CrewyardError, failures: int, deadline: float) -> None:
    """Raise `failure`, the last of so many in succession, unless the wait for a run goes on.

    As long as a stream reconnects: an update of the service outlasts the attempts of one request.
    """
    is_passing = not isinstance(failure, errors.ApiError) or failure.passing
    if not is_passing or failures >= retry.MAX_RECONNECTS or is_over(deadline):
        raise failure


def wrong_environment(error: Exception) -> SettingsError:
    """Return the SettingsError for a proxy or CA file of the environment that httpx refuses."""
    return SettingsError(
        f"a proxy or CA file cannot be used: {error}; "
        "check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR"
    )


def connection_failed(error: httpx.HTTPError, settings: Settings) -> errors.ConnectionFailed:
    """Return the ConnectionFailed for an httpx error; uploads and artifacts may go to an object store."""
    reason, url = str(error) or type(error).__name__, error.request.url
    if url.netloc == httpx.URL(settings.url).netloc:
        return errors.ConnectionFailed(
            f"{settings.url} cannot be reached: {reason}; check CREWYARD_URL and the network"
        )
    return errors.ConnectionFailed(
        f"{url.scheme}://{url.netloc.decode()}, where the service sent the client, cannot be reached: "
        f"{reason}; check the network"
    )


def stream_closed(settings: Settings) -> errors.ConnectionFailed:
    """Return the ConnectionFailed for a stream that the service keeps closing early."""
    return errors.ConnectionFailed(f"{settings.url} closed the stream repeatedly")


def event(message: SSEMessage) -> Event:
    """Return a message as the event of the JSON list. Raises CrewyardError."""
    try:
        return {"id": int(message.id), "type": message.type, "data": json.loads(message.data)}
    except ValueError:
        raise errors.CrewyardError(
            "the stream has a message that is not an event; check CREWYARD_URL"
        ) from None


def log_text(message: SSEMessage) -> str:
    """Return the line of a build log's message, or a piece of a long line. Raises CrewyardError."""
    data = event(SSEMessage(message.type, message.data, "0"))["data"]
    return str(data.get("message", "")) + ("" if data.get("continues") else "\n")


def ends_build(message: SSEMessage) -> bool:
    """Return whether it is the message after the last line of a build log."""
    return message.type == "end"


def is_last(message: SSEMessage) -> bool:
    """Return whether it is the last event of a run."""
    return message.type in ("run.completed", "run.failed", "run.canceled")
