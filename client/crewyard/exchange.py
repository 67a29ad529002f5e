"""What both clients do alike around one request: headers, answers, and whether to try again. Pure."""

import json
from typing import Any, TypeVar

import httpx

from crewyard import errors, retry
from crewyard.call import Call
from crewyard.models import Event
from crewyard.settings import Settings
from crewyard.sse import Message

T = TypeVar("T")
SECONDS = 30.0
SILENCE = 45.0
"""A stream gives a sign of life every 15 s."""


def nobody(_problem: errors.CrewyardError, _seconds: float) -> None:
    """Nobody is told of a wait."""


def headers(settings: Settings, accept: str = "application/json") -> dict[str, str]:
    """The headers of every call."""
    return {"Authorization": f"Bearer {settings.api_key}", "Accept": accept, "User-Agent": "crewyard-client"}


def stream_headers(settings: Settings, last_id: str) -> dict[str, str]:
    """The headers of a stream, from behind the last message that arrived."""
    given = {**headers(settings, "text/event-stream"), "Cache-Control": "no-store"}
    return {**given, "Last-Event-ID": last_id} if last_id else given


def limits(seconds: float) -> httpx.Timeout:
    """At most ten seconds to connect, `seconds` for each further wait."""
    return httpx.Timeout(seconds, connect=min(10.0, seconds))


def arguments(settings: Settings, call: Call[Any]) -> dict[str, Any]:
    """What httpx needs for a call. Raises WrongValue where its body is no JSON."""
    given: dict[str, Any] = {
        "method": call.method,
        "url": settings.url + call.path,
        "headers": {**headers(settings), **call.headers},
    }
    if call.query:
        given["params"] = dict(call.query)
    if call.body is not None:
        given["content"] = _json(call.body)
    if call.method in ("POST", "PUT", "PATCH"):
        given["headers"]["Content-Type"] = "application/json"
    return given


def _json(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise errors.WrongValue("a text has characters that are none (half a surrogate pair)") from None
    except (ValueError, RecursionError) as error:
        raise errors.WrongValue(f"this cannot be sent as JSON: {error}") from None


def result(call: Call[T], response: httpx.Response, again: bool) -> T:
    """The result of an answer that was read. Raises ApiError, CrewyardError."""
    if again and call.method == "DELETE" and response.status_code == 404:
        return call.read(None)  # It was removed by the try whose answer did not arrive.
    check(response)
    if response.status_code == 204:
        return call.read(None)
    try:
        return call.read(response.json())
    except (ValueError, KeyError, TypeError):
        raise errors.CrewyardError(
            f"{response.request.url.host} does not answer as Crewyard; is the address right?"
        ) from None


def check(response: httpx.Response) -> None:
    """Raises the ApiError of an answer that is no success; its body must have been read."""
    if response.is_success:
        return
    try:
        body = response.json()
    except ValueError:
        body = None
    raise errors.of_answer(response.status_code, response.headers, body)


def check_stream(response: httpx.Response) -> None:
    """Raises CrewyardError where a stream's answer is something else, such as the page of a proxy."""
    kind = response.headers.get("Content-Type", "")
    if kind.partition(";")[0].strip().lower() != "text/event-stream":
        raise errors.CrewyardError(
            f"{response.request.url.host} does not answer with a stream, but {kind}; is the address right?"
        )


def check_text(response: httpx.Response) -> None:
    """Raises CrewyardError where a log's answer is something else, such as a page to sign in."""
    kind = response.headers.get("Content-Type", "")
    if kind.partition(";")[0].strip().lower() != "text/plain":
        raise errors.CrewyardError(
            f"{response.request.url.host} does not answer with text, but {kind}; is the address right?"
        )


def wait(problem: Exception, failures: int, repeatable: bool) -> float:
    """Seconds until the next try; raises the problem where another one would not help, or not be right."""
    if failures >= retry.ATTEMPTS or not repeatable:
        raise problem
    if isinstance(problem, errors.ApiError):
        if not problem.passing or problem.code == "queue_full":
            raise problem
        return retry.pause(failures, problem.retry_after)
    return retry.pause(failures, None)


def trouble(error: httpx.HTTPError, settings: Settings) -> errors.ConnectionFailed:
    """A broken connection as what callers catch."""
    what = str(error) or type(error).__name__
    return errors.ConnectionFailed(f"{settings.url} cannot be reached: {what}")


def closed(settings: Settings) -> errors.ConnectionFailed:
    """A stream that ended before its end as what callers catch."""
    return errors.ConnectionFailed(f"{settings.url} closed the stream again and again")


def event(message: Message) -> Event:
    """A message as the JSON list has it. Raises CrewyardError."""
    try:
        return {"id": int(message.id), "type": message.type, "data": json.loads(message.data)}
    except ValueError:
        raise errors.CrewyardError(
            "the stream has a message that is no event; is the address right?"
        ) from None


def log_text(message: Message) -> str:
    """The line of a build log's message, or a piece of a long one. Raises CrewyardError."""
    data = event(Message(message.type, message.data, "0"))["data"]
    return str(data.get("message", "")) + ("" if data.get("continues") else "\n")


def ends_build(message: Message) -> bool:
    """Whether it is the message behind the last line of a build log."""
    return message.type == "end"


def is_last(message: Message) -> bool:
    """Whether nothing follows this event of a run."""
    return message.type in ("run.completed", "run.failed", "run.canceled")
