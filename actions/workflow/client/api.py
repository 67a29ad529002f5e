"""API client with retries and event streams that resume after a broken connection.

Called by both actions. Every call ends at the deadline.
"""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPResponse, IncompleteRead
from typing import Any, TypeVar

from actions.workflow.client.credential import StepCredential
from actions.workflow.client.sse import StreamMessage, StreamReader
from actions.workflow.client.transport import CONNECTION_ERRORS, UploadBody, send_request
from actions.workflow.console import Console
from actions.workflow.errors import ErrorResponse, Redirected, StepFailed

T = TypeVar("T")

MAX_ATTEMPTS = 8
# Consecutive connections without a new message that end early; with back-off about seven minutes.
MAX_RECONNECTS = 30
# A connection that lasts this long counts as working, even without messages: proxies cut idle streams.
_STABLE_SECONDS = 10.0
_MAX_RESPONSE_BYTES = 8 * 1024 * 1024
_MAX_LINE_BYTES = 8 * 1024 * 1024
_CALL_TIMEOUT_SECONDS = 60.0
# The service sends a keep-alive every 15 s.
_STREAM_TIMEOUT_SECONDS = 45.0


def pause(number: int, retry_after: float | None) -> float:
    """Return the seconds to wait after attempt `number`.

    `retry_after` wins, up to 120 s; otherwise exponential back-off up to 15 s with jitter.
    """
    if retry_after is not None:
        return min(retry_after, 120.0)
    return float(min(15.0, 0.5 * 2 ** min(number - 1, 10)) * random.uniform(0.5, 1.0))


class ApiClient:
    """Client of one installation with one credential. `deadline` is on the monotonic clock."""

    def __init__(self, url: str, credential: StepCredential, console: Console, deadline: float) -> None:
        self.url, self.deadline = url, deadline
        self._credential, self._console = credential, console

    def seconds_left(self) -> float:
        """Return the seconds to the deadline. Raises StepFailed after it."""
        seconds_left = self.deadline - time.monotonic()
        if seconds_left <= 0:
            raise StepFailed("The step took longer than the input timeout allows.", title="Timeout")
        return seconds_left

    def get(self, path: str) -> Any:
        """Return the JSON of a GET."""
        return self._json("GET", path, None, {})

    def post(self, path: str, body: Any = None, idempotency_key: str | None = None) -> Any:
        """Return the `data` of a POST. Retried, so a request that creates needs an idempotency key."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return self._json("POST", path, body, headers)["data"]

    def get_once(self, path: str, seconds: float) -> Any:
        """Return the `data` of a GET without retries, within `seconds`; for use while the step is ending."""
        with self._open("GET", path, None, {}, seconds) as response:
            return _object(response)["data"]

    def post_once(self, path: str, body: Any, seconds: float, idempotency_key: str | None = None) -> Any:
        """Return the `data` of a POST without retries, within `seconds`; for use while the step is ending."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        with self._open("POST", path, body, headers, seconds) as response:
            return _object(response)["data"]

    def put(self, url: str, headers: Mapping[str, str], body: Callable[[], UploadBody]) -> None:
        """Send bytes to a signed URL, without the key; `body` returns a new reader for each attempt."""

        def send() -> None:
            with send_request(
                "PUT", url, headers, body(), min(_CALL_TIMEOUT_SECONDS, self.seconds_left())
            ) as response:
                response.read(_MAX_RESPONSE_BYTES)

        self.retry("the upload", send)

    def download(self, path: str, read: Callable[[HTTPResponse], T]) -> T:
        """Return the result of `take`, which reads the response; called for each attempt.

        Follows a redirect to an object store, without sending the key.
        """

        def fetch() -> T:
            headers, seconds = {"Accept": "*/*"}, min(_CALL_TIMEOUT_SECONDS, self.seconds_left())
            try:
                response = self._open("GET", path, None, headers, seconds)
            except Redirected as redirect:
                location = redirect.url
            else:
                with response:
                    return read(response)
            with send_request("GET", location, headers, None, seconds) as response:
                return read(response)

        return self.retry(path, fetch)

    def follow(self, path: str) -> Iterator[StreamMessage]:
        """Yield the messages of a stream, each once, until the service responds 204.

        The caller must stop at the final message; a connection that merely closes is reopened.
        """
        reader, idle = StreamReader(), 0
        while True:
            idle += 1
            retry_after: float | None = None
            opened: float | None = None
            failure = f"{self.url} closed the stream {path} repeatedly without a final message."
            try:
                headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
                if reader.last is not None:
                    headers["Last-Event-ID"] = reader.last
                with self._open(
                    "GET", path, None, headers, min(_STREAM_TIMEOUT_SECONDS, self.seconds_left())
                ) as response:
                    if response.status == 204:
                        return
                    opened = time.monotonic()
                    for message in reader.messages(self._lines(response)):
                        idle = 0
                        yield message
                retry_after = reader.retry
            except ErrorResponse as error_response:
                if not error_response.retryable or idle > MAX_RECONNECTS:
                    raise
                retry_after = error_response.retry_after
            except CONNECTION_ERRORS as error:
                failure = f"The connection to {self.url} broke repeatedly: {error}."
                if isinstance(error, TimeoutError):
                    opened = None  # silent: its age does not count as working
            if opened is not None and time.monotonic() - opened >= _STABLE_SECONDS:
                idle = 0
            if idle > MAX_RECONNECTS:
                raise StepFailed(failure)
            self._sleep(pause(idle, retry_after) if idle <= 2 else max(pause(idle, None), retry_after or 0.0))

    def retry(self, description: str, attempt: Callable[[], T]) -> T:
        """Return the result of `attempt`; retry after broken connections, 429 and 5xx, then re-raise."""
        for number in range(1, MAX_ATTEMPTS + 1):
            try:
                return attempt()
            except ErrorResponse as error_response:
                if not error_response.retryable or number == MAX_ATTEMPTS:
                    raise
                self._wait_before_retry(
                    description, error_response, pause(number, error_response.retry_after)
                )
            except CONNECTION_ERRORS as error:
                if number == MAX_ATTEMPTS:
                    raise StepFailed(
                        f"{description}: {error}. "
                        "Can the runner reach this host, and is the input api-url right?"
                    ) from None
                self._wait_before_retry(description, error, pause(number, None))
        raise AssertionError("the last attempt returns or raises")

    def _wait_before_retry(self, description: str, reason: Exception, seconds: float) -> None:
        self._console.log(f"{description}: {reason}; retrying in {seconds:.0f} s")
        self._sleep(seconds)

    def _sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, self.seconds_left()))
        self.seconds_left()

    def _json(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Any:
        def call() -> Any:
            with self._open(
                method, path, body, headers, min(_CALL_TIMEOUT_SECONDS, self.seconds_left())
            ) as response:
                return _object(response)

        return self.retry(f"{method} {path}", call)

    def _open(
        self, method: str, path: str, body: Any, headers: Mapping[str, str], seconds: float
    ) -> HTTPResponse:
        fields = {"Accept": "application/json", **headers}
        raw = None
        if method == "POST":
            raw = json.dumps(body, separators=(",", ":")).encode() if body is not None else b""
            fields["Content-Type"] = "application/json"
        try:
            return send_request(
                method, self.url + path, {**fields, **self._authorization(seconds)}, raw, seconds
            )
        except ErrorResponse as error_response:
            if error_response.status != 401:
                raise
            if not self._credential.renew():
                raise self._with_advice(error_response) from None
        try:
            return send_request(
                method, self.url + path, {**fields, **self._authorization(seconds)}, raw, seconds
            )
        except ErrorResponse as error_response:
            raise self._with_advice(error_response) from None

    def _with_advice(self, error_response: ErrorResponse) -> ErrorResponse:
        if error_response.status != 401:
            return error_response
        return ErrorResponse(401, error_response.code, f"{error_response.message}. {self._credential.advice}")

    def _authorization(self, seconds: float) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._credential.bearer(seconds)}"}

    def _lines(self, response: HTTPResponse) -> Iterator[bytes]:
        while line := response.readline(_MAX_LINE_BYTES):
            yield line
            self.seconds_left()


def _object(response: HTTPResponse) -> dict[str, Any]:
    raw = response.read(_MAX_RESPONSE_BYTES)
    if response.length:
        raise IncompleteRead(raw, response.length)
    try:
        value = json.loads(raw)
        if isinstance(value, dict) and "data" in value:
            return value
    except ValueError:
        pass
    raise StepFailed("The response is not from Crewyard. Is the input api-url the URL of the API?")
