"""`ask`: asks a person, and waits for the answer. Called by crews, for `input()`, and for interrupts.

A question goes to process 1 on the event channel; answers come back as lines of JSON on descriptor 4, which
one thread reads. A forked process shares both, so only the process that the runner started can ask.
"""

from __future__ import annotations

import _thread
import json
import os
from collections.abc import Mapping

from .. import channel
from ..events import CUT_MARK
from ..jsonsafe import json_safe
from .question import InputRequired, impossible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_MAX_PROMPT_CHARS = 8192
_MAX_QUESTION_BYTES = 256 * 1024  # the runner drops a line of 512 KiB; the API server says what is too long
_READ_BYTES = 65536
_descriptor = -1
_process = -1
_lock = _thread.allocate_lock()
_open: dict[int, SentQuestion] = {}
_count = 0
_reading = False


class InputTimeout(TimeoutError):
    """No answer arrived within the `timeout` of the question."""


class SentQuestion:
    """A question that was sent; `result` blocks until its answer."""

    def __init__(self, prompt: str, on_answer: Callable[[], None] | None = None) -> None:
        self.prompt = prompt
        self.number = 0
        self._on_answer = on_answer
        self._message: Mapping[str, object] = {}
        self._answered = _thread.allocate_lock()
        self._answered.acquire()

    def finish(self, message: Mapping[str, object]) -> None:
        """Take the answer, once; called by the reading thread."""
        self._message = message
        self._answered.release()
        if self._on_answer is not None:
            try:
                self._on_answer()
            except RuntimeError:  # the event loop was closed
                return

    def result(self) -> object:
        """Return the answer. Raises InputTimeout, InputRequired, and ValueError for a refused question."""
        try:
            with self._answered:
                pass
        except BaseException:
            withdraw(self)
            raise
        return self.answer()

    def answer(self) -> object:
        """Return or raise what arrived."""
        if "value" in self._message:
            return self._message["value"]
        text = str(self._message.get("message") or "")
        match self._message.get("error"):
            case "timeout":
                raise InputTimeout(f"No one answered in time: {self.prompt[:300]!r}")
            case "refused":
                raise ValueError(f"ask: {text}")
        raise InputRequired(impossible(self.prompt, text))


def open_on(descriptor: int) -> None:
    """Let this process ask; `descriptor` delivers the answers. Called once, by `crew`."""
    global _descriptor, _process
    os.set_inheritable(descriptor, False)
    _descriptor, _process = descriptor, os.getpid()


def is_possible() -> bool:
    """Return whether this process can ask a person."""
    return _descriptor >= 0 and _process == os.getpid()


def ask(
    prompt: str,
    schema: Mapping[str, object] | None = None,
    choices: Sequence[object] | None = None,
    timeout: float | None = None,
) -> object:
    """Ask a person and return the answer, a JSON value: `ask("Publish it?", choices=["yes", "no"])`.

    `schema` is a JSON Schema of the answer, `choices` the only answers; without them any JSON value is
    allowed. `timeout` is in seconds; after it, InputTimeout is raised. The time does not count against the
    run's timeout, but against its `askTimeout`. Outside a run it asks at the terminal. Blocks; `ask_async`
    does not.
    """
    if not channel.is_open():
        from .terminal import ask_at_terminal

        _check(schema, choices, timeout)
        return ask_at_terminal(prompt, schema, choices)
    return send(prompt, schema, choices, timeout).result()


async def ask_async(
    prompt: str,
    schema: Mapping[str, object] | None = None,
    choices: Sequence[object] | None = None,
    timeout: float | None = None,
) -> object:
    """Ask as `ask` does, without blocking the event loop."""
    import asyncio

    if not channel.is_open():
        return await asyncio.to_thread(ask, prompt, schema, choices, timeout)
    loop = asyncio.get_running_loop()
    answered = asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(answered.set)

    question = send(prompt, schema, choices, timeout, wake)
    try:
        await answered.wait()
    except BaseException:
        withdraw(question)
        raise
    return question.answer()


def send(
    prompt: str,
    schema: Mapping[str, object] | None = None,
    choices: Sequence[object] | None = None,
    timeout: float | None = None,
    on_answer: Callable[[], None] | None = None,
) -> SentQuestion:
    """Send a question without waiting for its answer.

    Raises InputRequired if this process cannot ask, and ValueError for what no question can have.
    """
    global _count, _reading
    text = str(prompt)
    if not is_possible():
        why = "only the process that the runner started can ask" if _descriptor >= 0 else ""
        raise InputRequired(impossible(text, why))
    _check(schema, choices, timeout)
    question = SentQuestion(text, on_answer)
    if len(text) > _MAX_PROMPT_CHARS:
        text = text[: _MAX_PROMPT_CHARS - len(CUT_MARK)] + CUT_MARK
    fields: dict[str, object] = {"prompt": text}
    fields |= {} if schema is None else {"schema": json_safe(dict(schema))}
    fields |= {} if choices is None else {"choices": json_safe(list(choices))}
    fields |= {} if timeout is None else {"timeout": float(timeout)}
    if (size := len(json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace"))) > _MAX_QUESTION_BYTES:
        raise ValueError(f"ask: schema and choices have {size} bytes; give each at most 16 KiB")
    with _lock:
        _count += 1
        question.number = _count
        _open[question.number] = question
        if not _reading:
            _reading = True
            _thread.start_new_thread(_read_answers, ())
    line = json.dumps({"ask": {"number": question.number, **fields}}, ensure_ascii=False)
    channel.write(line.encode("utf-8", "replace"))
    return question


def _check(schema: object, choices: object, timeout: Any) -> None:
    """Raise ValueError for an argument that no question can have."""
    if schema is not None and not isinstance(schema, Mapping):
        raise ValueError(f"ask: schema must be a JSON Schema as a dict, not {schema!r}")
    if choices is not None and (isinstance(choices, (str, bytes)) or not hasattr(type(choices), "__iter__")):
        raise ValueError(f"ask: choices must be a list, not {choices!r}")
    try:
        possible = timeout is None or (not isinstance(timeout, bool) and timeout > 0 and float(timeout) > 0)
    except (TypeError, OverflowError):
        possible = False
    if not possible:
        raise ValueError(f"ask: timeout must be a number of seconds above 0, not {timeout!r}")


def withdraw(question: SentQuestion) -> None:
    """Say that nothing waits for the answer any more."""
    with _lock:
        if _open.pop(question.number, None) is None:
            return
    channel.write(json.dumps({"ask": {"number": question.number, "withdrawn": True}}).encode())


def _read_answers() -> None:
    """Deliver each line to its question. With os.read: a buffered reader can block the process's end."""
    pending: list[bytes] = []
    while data := os.read(_descriptor, _READ_BYTES):
        *lines, rest = data.split(b"\n")
        for line in lines:
            message = json.loads(b"".join(pending) + line)
            pending.clear()
            with _lock:
                question = _open.pop(message["number"], None)
            if question is not None:
                question.finish(message)
        if rest:
            pending.append(rest)
