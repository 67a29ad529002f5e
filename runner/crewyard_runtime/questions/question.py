"""`input()` in a run: asks a person, or ends a run that cannot ask. Called by `crew`.

Python raises EOFError at `input()` without a terminal. Frameworks catch that and continue as if the person
had said nothing, so unanswered questions from installed packages are recorded.
"""

from __future__ import annotations

import builtins
import sys

from ..frameworks.installed_files import is_installed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_MAX_QUESTION_CHARS = 300
_UNSUPPORTED = (
    "the entrypoint returned before the answer, and only a graph that the runner itself calls goes on"
)
_from_packages: list[str] = []
_unanswered: set[str] = set()


class InputRequired(EOFError):
    """The crew asked a person, without an answer; the message has the question and the next step."""


def install() -> None:
    """Let `input()` ask a person at the end of standard input, and always in an installed package.

    Standard input of a script has the run's input, which is no answer to a framework's question.
    """
    read_line = builtins.input

    def ask(prompt: object = "", /) -> str:
        caller = sys._getframe(1)
        if is_installed(caller.f_code.co_filename):
            text = str(prompt)
            if "/crewai/" in caller.f_code.co_filename:
                from ..frameworks.crewai_question import prompt_of

                text = prompt_of(caller, text)
            elif "click/" in caller.f_code.co_filename and len(text) <= 1:
                return _ask_for_click(caller, text)
            return _ask_for_package(text)
        try:
            line = read_line()
        except EOFError:
            return _ask(str(prompt))
        sys.stdout.write(str(prompt))  # not before: the last line of a script is its output
        return line

    builtins.input = ask


def _ask(prompt: str) -> str:
    import re

    from .ask import ask

    text = re.sub(r"\x1b\[[0-9;:]*m", "", prompt).strip()  # colours of a terminal
    try:
        return str(ask(text or "The crew waits for a line of text.", schema={"type": "string"}))
    except InputRequired as error:
        _unanswered.add(str(error))
        raise


def _ask_for_package(prompt: str) -> str:
    try:
        return _ask(prompt)
    except InputRequired as error:
        if not _from_packages:
            _from_packages.append(str(error))
        raise


def _ask_for_click(caller: FrameType, rest: str) -> str:
    """Ask what click and typer print themselves, but for its last character, and end that line."""
    printed = caller.f_locals.get("text") or caller.f_locals.get("prompt")
    answer = _ask_for_package(printed if isinstance(printed, str) else rest)
    sys.stdout.write("\n")
    return answer


def impossible(question: object, why: str = "") -> str:
    """Return the message of a run that cannot ask a person this question, because of `why`."""
    text = str(question).strip()[:_MAX_QUESTION_CHARS]
    asked = f"asked a person {text!r}" if text else "asked a person"
    reason = (
        why
        or "the project or the installation gives runs no time for answers (spec.run.askTimeout, ask_seconds)"
    )
    return (
        f"The crew {asked}, but it cannot: {reason}. Pass the answer in the run's input, or "
        "remove the question from the crew (ask, input(), human_input, human_feedback, interrupt)."
    )


def check_unanswered(value: object) -> None:
    """Raise InputRequired if the entrypoint's return value, or a package that asked, waits for a person."""
    kind = type(value)
    if kind.__name__ == "HumanFeedbackPending" and kind.__module__.startswith("crewai."):
        context = getattr(value, "context", None)
        raise InputRequired(impossible(getattr(context, "message", "") or "", _UNSUPPORTED))
    if isinstance(value, dict) and (interrupts := _interrupts(value.get("__interrupt__"))):
        raise InputRequired(impossible(interrupts[0], _UNSUPPORTED))
    if _from_packages:
        raise InputRequired(_from_packages[0])


def find(error: BaseException) -> InputRequired | None:
    """Return the unanswered question that caused the exception, a member of it, or that is in its text."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        cause = pending.pop(0)
        if cause is None or id(cause) in seen:
            continue
        if isinstance(cause, InputRequired):
            return cause
        seen.add(id(cause))
        pending.append(cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__))
        pending += cause.exceptions if isinstance(cause, BaseExceptionGroup) else ()
    try:
        text = str(error)
    except Exception:  # a __str__ that fails
        return None
    return next((InputRequired(asked) for asked in _unanswered if asked in text), None)


def _interrupts(value: object) -> list[object]:
    """Return the questions of LangGraph's interrupts, which a graph returns under `__interrupt__`."""
    items = value if isinstance(value, (list, tuple)) else []
    return [item.value for item in items if type(item).__name__ == "Interrupt" and hasattr(item, "value")]
