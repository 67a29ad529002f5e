"""The calls of Crewyard's API: repeated while that helps, followed across broken connections.

Called by the two programs. Everything ends at the deadline.
"""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPResponse, IncompleteRead
from typing import Any, TypeVar

from actions.workflow.client.credential import Credential
from actions.workflow.client.sse import Message, Reader
from actions.workflow.client.transport import TROUBLE, Body, exchange
from actions.workflow.console import Console
from actions.workflow.errors import Failed, Moved, Refusal

T = TypeVar("T")

ATTEMPTS = 8
# Reconnects in a row that bring nothing new: with growing pauses about seven minutes.
RECONNECTS = 30
_ANSWER_BYTES = 8 * 1024 * 1024
_LINE_BYTES = 8 * 1024 * 1024
_CALL_SECONDS = 60.0
# A sign of life comes every 15 s.
_SILENCE_SECONDS = 45.0


def pause(number: int, wished: float | None) -> float:
    """Seconds before the try after the `number`th: what the service asks for, else growing to 15, uneven."""
    if wished is not None:
        return min(wished, 120.0)
    return float(min(15.0, 0.5 * 2 ** min(number - 1, 10)) * random.uniform(0.5, 1.0))


class Api:
    """One installation as one caller. `deadline` is of the monotonic clock."""

    def __init__(self, url: str, credential: Credential, console: Console, deadline: float) -> None:
        self.url, self.deadline = url, deadline
        self._credential, self._console = credential, console

    def left(self) -> float:
        """Seconds to the deadline. Raises Failed behind it."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Failed("It took longer than the input timeout allows.", title="Timeout")
        return left

    def get(self, path: str) -> Any:
        """The whole answer of a GET."""
        return self._json("GET", path, None, {})

    def post(self, path: str, body: Any = None, idempotency_key: str | None = None) -> Any:
        """The `data` of a POST. Repeated, so what makes something needs an idempotency key."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return self._json("POST", path, body, headers)["data"]

    def once(self, path: str, body: Any, seconds: float, idempotency_key: str | None = None) -> Any:
        """The same, tried once and for so many seconds only: for what is done while the step is ending."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        with self._open("POST", path, body, headers, seconds) as answer:
            return _object(answer)["data"]

    def put(self, url: str, headers: Mapping[str, str], body: Callable[[], Body]) -> None:
        """Sends bytes to a signed address, without the key; `body` gives them anew for each try."""

        def send() -> None:
            with exchange("PUT", url, headers, body(), min(_CALL_SECONDS, self.left())) as answer:
                answer.read(_ANSWER_BYTES)

        self.repeated("the upload", send)

    def download(self, path: str, take: Callable[[HTTPResponse], T]) -> T:
        """What `take` makes of the bytes; it is called anew for each try.

        They may be in an object store, at an address that the service gives and that needs no key.
        """

        def fetch() -> T:
            headers, seconds = {"Accept": "*/*"}, min(_CALL_SECONDS, self.left())
            try:
                answer = self._open("GET", path, None, headers, seconds)
            except Moved as moved:
                there = moved.url
            else:
                with answer:
                    return take(answer)
            with exchange("GET", there, headers, None, seconds) as answer:
                return take(answer)

        return self.repeated(path, fetch)

    def follow(self, path: str) -> Iterator[Message]:
        """The messages of a stream, each once, to where the service ends it for good.

        The caller stops at the message it knows for the last; what merely closes is opened again.
        """
        reader, idle = Reader(), 0
        while True:
            idle += 1
            wished: float | None = None
            try:
                headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
                if reader.last is not None:
                    headers["Last-Event-ID"] = reader.last
                with self._open("GET", path, None, headers, min(_SILENCE_SECONDS, self.left())) as answer:
                    if answer.status == 204:
                        return
                    for message in reader.messages(self._lines(answer)):
                        idle = 0
                        yield message
                wished = reader.retry
            except Refusal as refusal:
                if not refusal.passing or idle > RECONNECTS:
                    raise
                wished = refusal.retry_after
            except TROUBLE as trouble:
                if idle > RECONNECTS:
                    raise Failed(f"The connection to {self.url} broke again and again: {trouble}.") from None
            if idle > RECONNECTS:
                raise Failed(f"{self.url} closed the stream {path} again and again, without an end.")
            self._sleep(pause(idle, wished) if idle <= 2 else max(pause(idle, None), wished or 0.0))

    def repeated(self, what: str, attempt: Callable[[], T]) -> T:
        """What `attempt` gives, tried again after broken connections, 429 and 5xx; then as the last try."""
        for number in range(1, ATTEMPTS + 1):
            try:
                return attempt()
            except Refusal as refusal:
                if not refusal.passing or number == ATTEMPTS:
                    raise
                self._again(what, refusal, pause(number, refusal.retry_after))
            except TROUBLE as trouble:
                if number == ATTEMPTS:
                    raise Failed(
                        f"{self.url} cannot be reached for {what}: {trouble}. Is the input api-url right?"
                    ) from None
                self._again(what, trouble, pause(number, None))
        raise AssertionError("the last attempt returns or raises")

    def _again(self, what: str, why: Exception, seconds: float) -> None:
        self._console.say(f"{what}: {why}; again in {seconds:.0f} s")
        self._sleep(seconds)

    def _sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, self.left()))
        self.left()

    def _json(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Any:
        def call() -> Any:
            with self._open(method, path, body, headers, min(_CALL_SECONDS, self.left())) as answer:
                return _object(answer)

        return self.repeated(f"{method} {path}", call)

    def _open(
        self, method: str, path: str, body: Any, headers: Mapping[str, str], seconds: float
    ) -> HTTPResponse:
        given = {"Accept": "application/json", **headers}
        raw = None
        if method == "POST":
            raw = json.dumps(body, separators=(",", ":")).encode() if body is not None else b""
            given["Content-Type"] = "application/json"
        try:
            return exchange(method, self.url + path, {**given, **self._bearer()}, raw, seconds)
        except Refusal as refusal:
            if refusal.status != 401:
                raise
            if not self._credential.renew():
                raise self._advised(refusal) from None
        try:
            return exchange(method, self.url + path, {**given, **self._bearer()}, raw, seconds)
        except Refusal as refusal:
            raise self._advised(refusal) from None

    def _advised(self, refusal: Refusal) -> Refusal:
        if refusal.status != 401:
            return refusal
        return Refusal(401, refusal.code, f"{refusal.message}. {self._credential.advice}")

    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._credential.bearer()}"}

    def _lines(self, answer: HTTPResponse) -> Iterator[bytes]:
        while line := answer.readline(_LINE_BYTES):
            yield line
            self.left()


def _object(answer: HTTPResponse) -> dict[str, Any]:
    raw = answer.read(_ANSWER_BYTES)
    if answer.length:
        raise IncompleteRead(raw, answer.length)
    try:
        found = json.loads(raw)
        if isinstance(found, dict) and "data" in found:
            return found
    except ValueError:
        pass
    raise Failed("The answer is not Crewyard's. Is the input api-url the API's own address?")
