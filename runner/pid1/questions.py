"""Questions of the crew to a person: passes them to the API and the answers back. Used by `supervise`.

One thread per question; the API keeps question and answer, so a call that fails is repeated.
"""

from __future__ import annotations

import os
import threading
import time

from runner.pid1.api.client import APIUnavailable, RunLost, json_object, now, retry_until_status
from runner.pid1.api.fast_json import dumps
from runner.pid1.output import encode
from runner.pid1.process import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.pid1.api.client import RunAPIClient
    from runner.pid1.output.event_queue import EventQueue
    from runner.pid1.output.mask import SecretMask

MAX_OPEN_QUESTIONS = 16
_POLL_SECONDS = 20.0
_API_GRACE_SECONDS = 600.0  # after the expiry, for an API that is away
_CLOSE_SECONDS = 5.0
_STATUSES = frozenset({200, 400, 404, 413, 422})


class WaitingTime:
    """The time in which at least one question was open, and its limit. Thread-safe."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._total = 0.0
        self._since = 0.0
        self._open: set[str] = set()
        self._lock = threading.Lock()

    def begin(self, request_id: str, at: float) -> None:
        """Count a question as open."""
        with self._lock:
            self._since = self._since if self._open else at
            self._open.add(request_id)

    def end(self, request_id: str, at: float) -> None:
        """Count a question as closed, once."""
        with self._lock:
            was_open = bool(self._open)
            self._open.discard(request_id)
            if was_open and not self._open:
                self._total += at - self._since

    def total(self, at: float) -> float:
        """Return the seconds until `at`."""
        with self._lock:
            return self._total + (at - self._since if self._open else 0.0)


class CrewQuestion:
    """A question of the crew. `withdrawn` is set when the crew waits no longer.

    `client` is that of its thread, once the API has the question: only then may a call be aborted, or the API
    could open the question after the call that closes it.
    """

    def __init__(self, number: int, request_id: str, fields: dict[str, object]) -> None:
        self.number = number
        self.request_id = request_id
        self.fields = fields
        self.withdrawn = threading.Event()
        self.client: RunAPIClient | None = None


class Questions:
    """The questions of one crew. `answers` is the descriptor that the crew reads; -1 if it cannot ask."""

    def __init__(
        self, new_client: Callable[[], RunAPIClient], events: EventQueue, mask: SecretMask, answers: int,
        waiting: WaitingTime, event_bytes: int,
    ) -> None:  # fmt: skip
        self._new_client = new_client
        self._events = events
        self._mask = mask
        self._answers = answers
        self._waiting = waiting
        self._event_bytes = event_bytes
        self._open: dict[int, CrewQuestion] = {}
        self._count = 0
        self._writing = threading.Lock()
        self.expired = False
        self.lost = False

    def handle(self, message: dict[str, object]) -> None:
        """Take a message of the crew: a question, or that it waits for one no longer. Does not block."""
        number = message.get("number")
        if not isinstance(number, int):
            return
        if message.get("withdrawn") is True:
            if (known := self._open.get(number)) is not None:
                self._withdraw(known)
            return
        if len(self._open) >= MAX_OPEN_QUESTIONS:
            text = f"a run can have at most {MAX_OPEN_QUESTIONS} open questions at a time"
            self._reply(number, {"error": "refused", "message": text})
            return
        names = [name for name in ("prompt", "schema", "choices") if name in message]
        try:
            fields: dict[str, object] = {name: self._mask.value(message[name]) for name in names}
        except RecursionError:
            self._reply(number, {"error": "refused", "message": "it is nested too deeply"})
            return
        self._count += 1
        question = CrewQuestion(number, f"q{self._count}", fields)
        started = now()
        left = max(0.0, self._waiting.limit - self._waiting.total(started))
        own = message.get("timeout")
        seconds = min(left, own) if isinstance(own, int | float) else left
        self._open[number] = question
        self._waiting.begin(question.request_id, started)
        thread = threading.Thread(
            target=self._ask,
            args=(question, seconds, seconds < left),
            name=f"question {question.request_id}",
            daemon=True,
        )
        thread.start()

    def _withdraw(self, question: CrewQuestion) -> None:
        """Let the run's time go on, and the question's thread close it at once. Does not block."""
        question.withdrawn.set()
        self._waiting.end(question.request_id, now())
        if question.client is not None:
            question.client.abort()

    def _ask(self, question: CrewQuestion, seconds: float, limited: bool) -> None:
        """Ask, wait and reply. `limited`: the time is that of the question, not what the run has left."""
        client = self._new_client()
        try:
            reply = self._wait(client, question, now() + seconds, limited)
            self._open.pop(question.number, None)  # with the reply, the crew may ask the next one
            if reply is not None:
                self._reply(question.number, reply)
        except RunLost:
            self.lost = True
        except APIUnavailable:
            if not question.withdrawn.is_set():
                self.expired = self.expired or not limited
                self._reply(question.number, {"error": "timeout"})
        finally:
            self._open.pop(question.number, None)
            self._waiting.end(question.request_id, now())
            if self.expired or self.lost:
                signals.wake_main_thread()
        if question.withdrawn.is_set():
            client.close()
            client = self._new_client()
        self._close(client, question)

    def _wait(
        self, client: RunAPIClient, question: CrewQuestion, expires: float, limited: bool
    ) -> dict[str, object] | None:
        """Return the reply to the crew; None if it waits no longer, or never again."""

        def pause(wait: float) -> bool:
            return question.withdrawn.wait(wait) or now() > expires + _API_GRACE_SECONDS

        while not question.withdrawn.is_set():
            body = {
                "request_id": question.request_id,
                **question.fields,
                "timeout_seconds": round(max(0.0, expires - now()), 3),
                "wait_seconds": _POLL_SECONDS if question.client else 0,
            }
            response = retry_until_status(lambda: client.ask(body), _STATUSES, pause)  # noqa: B023
            answer = json_object(response)
            if response.status == 404:
                return {"error": "impossible", "message": "the service is too old to ask"}
            if response.status != 200:
                return {"error": "refused", "message": answer.get("error")}
            if question.client is None:
                self._announce(question, answer)
                question.client = client
            if answer.get("state") == "answered":
                self._put("input.received", {"request_id": question.request_id, "by": answer.get("by")})
                return {"value": answer.get("value")}
            if answer.get("state") == "expired" and not question.withdrawn.is_set():
                self.expired = self.expired or not limited
                return {"error": "timeout"} if limited else None
        return None

    def _close(self, client: RunAPIClient, question: CrewQuestion) -> None:
        """Tell the API that the crew has its answer, or waits no longer; a failure only keeps the answer."""
        end = now() + _CLOSE_SECONDS

        def pause(wait: float) -> bool:
            time.sleep(wait)
            return now() > end

        body: dict[str, object] = {"request_id": question.request_id, "done": True}
        try:
            retry_until_status(lambda: client.ask(body), _STATUSES, pause)
        except (APIUnavailable, RunLost):
            pass
        finally:
            client.close()

    def _announce(self, question: CrewQuestion, answer: dict[str, object]) -> None:
        """Emit the question as an event; without its schema or choices, if they are too large for one."""
        data = {"request_id": question.request_id, **question.fields, "expires_at": answer.get("expires_at")}
        for name in ("choices", "schema"):
            if len(encode.data(data).encode()) > self._event_bytes:
                data.pop(name, None)
        if len(encode.data(data).encode()) > self._event_bytes:
            data["prompt"] = str(data["prompt"])[: self._event_bytes // 16] + "…"
        self._put("input.requested", data)

    def _put(self, kind: str, data: dict[str, object]) -> None:
        self._events.put(encode.timestamp(time.time_ns()), [(kind, encode.data(data))])

    def _reply(self, number: int, reply: dict[str, object]) -> None:
        view = memoryview(dumps({"number": number, **reply}).encode() + b"\n")
        with self._writing:
            try:
                while view:
                    view = view[os.write(self._answers, view) :]
            except OSError:
                return  # the crew has exited
