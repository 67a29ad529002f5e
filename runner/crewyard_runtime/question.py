"""Questions of a crew to a person: a run has no terminal, so they end it. Called by `crew`.

Python raises EOFError at `input()` without a terminal. Frameworks catch that and continue as if the person
had said nothing, so questions from installed packages are recorded.
"""

from __future__ import annotations

import builtins
import sys

_MAX_QUESTION_CHARS = 300
_from_packages: list[str] = []


class InputRequired(EOFError):
    """The crew asked a person, without an answer; the message has the question and the next step."""


def install() -> None:
    """Let `input()` raise InputRequired at the end of standard input, and always in an installed package.

    Standard input of a script has the run's input, which is no answer to a framework's question.
    """
    read_line = builtins.input

    def ask(prompt: object = "", /) -> str:
        if "/site-packages/" in sys._getframe(1).f_code.co_filename:
            if not _from_packages:
                _from_packages.append(unanswered(prompt))
            raise InputRequired(unanswered(prompt))
        try:
            return read_line(prompt)
        except EOFError:
            raise InputRequired(unanswered(prompt)) from None

    builtins.input = ask


def unanswered(question: object) -> str:
    """Return the message of a run that asks a person this question."""
    text = str(question).strip()[:_MAX_QUESTION_CHARS]
    asked = f"asked a person {text!r}" if text else "asked a person"
    return (
        f"The crew {asked}, but a run has no terminal to answer at. Pass the answer in the run's input, or "
        "remove the question from the crew (input(), human_input, human_feedback, interrupt)."
    )


def check_unanswered(value: object) -> None:
    """Raise InputRequired if the entrypoint's return value, or a package that asked, waits for a person."""
    kind = type(value)
    if kind.__name__ == "HumanFeedbackPending" and kind.__module__.startswith("crewai."):
        context = getattr(value, "context", None)
        raise InputRequired(unanswered(getattr(context, "message", "") or ""))
    if isinstance(value, dict) and (interrupts := _interrupts(value.get("__interrupt__"))):
        raise InputRequired(unanswered(interrupts[0]))
    if _from_packages:
        raise InputRequired(_from_packages[0])


def find(error: BaseException | None) -> InputRequired | None:
    """Return the unanswered question that caused the exception; None if there is none."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, InputRequired):
            return error
        seen.add(id(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


def _interrupts(value: object) -> list[object]:
    """Return the questions of LangGraph's interrupts, which a graph returns under `__interrupt__`."""
    items = value if isinstance(value, (list, tuple)) else []
    return [item.value for item in items if type(item).__name__ == "Interrupt" and hasattr(item, "value")]
