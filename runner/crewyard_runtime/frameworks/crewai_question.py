"""The question behind CrewAI's `input()`, which prints what it asks about before. Called by `question`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_MAX_FRAMES = 4
_RESULTS = ("answer", "formatted_answer", "final_answer")  # local variables, the newest first


def prompt_of(caller: FrameType, prompt: str) -> str:
    """Return the prompt with the result that it asks about, if a function of CrewAI has one."""
    message, output = caller.f_locals.get("message"), caller.f_locals.get("output")
    if isinstance(message, str) and output is not None:
        return f"{output}\n\n{message}"
    frame: FrameType | None = caller
    for _ in range(_MAX_FRAMES):
        if frame is None or "/crewai/" not in frame.f_code.co_filename:
            break
        for name in _RESULTS:
            value = frame.f_locals.get(name)
            text = value if isinstance(value, str) else getattr(value, "output", None)
            if isinstance(text, str) and text:
                return f"{text}\n\nGive feedback on this result, or an empty answer to accept it."
        frame = frame.f_back
    return prompt.strip() or "Give feedback on the agent's result, or an empty answer to accept it."
