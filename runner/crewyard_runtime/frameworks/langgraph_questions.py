"""Interrupts of LangGraph as questions to a person, and the command that resumes a graph with the answers.

Called by `langgraph_call`. Uses attributes, not classes, since the framework moves classes between versions.
"""

from __future__ import annotations

import json
import os
import sys

from ..jsonsafe import json_safe
from ..questions import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_MAX_OPEN_QUESTIONS = 16  # of a run; process 1 refuses more


def may_interrupt() -> bool:
    """Return whether code of the crew or of a package, except LangGraph's own, refers to `interrupt`."""
    types = sys.modules.get("langgraph.types")
    function = getattr(types, "interrupt", None)
    if function is None:
        return False
    app = os.getcwd() + os.sep
    for name, module in list(sys.modules.items()):
        if name == "langgraph" or name.startswith("langgraph."):
            continue
        if any(value is function or value is types for value in list(vars(module).values())):
            return True
        file = getattr(module, "__file__", None) or ""
        if file.startswith(app) and "/site-packages/" not in file and _names_it(file):
            return True
    return False


def _names_it(file: str) -> bool:
    try:
        with open(file, encoding="utf-8", errors="replace") as source:
            return "interrupt" in source.read()
    except OSError:
        return False


def memory_checkpointer() -> object:
    """Return a checkpointer that keeps the graph's state in memory, also what has no serialized form."""
    from importlib import import_module

    serializer: Any = import_module("langgraph.checkpoint.serde.jsonplus").JsonPlusSerializer

    class MemorySerializer(serializer):  # type: ignore[misc]
        """LangGraph's serializer; a value that it cannot serialize is kept itself."""

        def dumps_typed(self, obj: Any) -> tuple[str, Any]:
            try:
                typed: tuple[str, Any] = super().dumps_typed(obj)
            except Exception:  # of any type: a client, a lock
                return "value", obj
            return typed

        def loads_typed(self, data: tuple[str, Any]) -> Any:
            return data[1] if data[0] == "value" else super().loads_typed(data)

    checkpointer: object = import_module("langgraph.checkpoint.memory").MemorySaver(serde=MemorySerializer())
    return checkpointer


def answer(waiting: list[Any]) -> object:
    """Ask about all interrupts, as many at once as a run may; return the command that resumes the graph."""
    answers: list[object] = []
    for group in _groups(_answerable(waiting)):
        asked = [ask.send(_prompt(item)) for item in group]
        answers += [question.result() for question in asked]
    return _command(waiting, answers)


async def answer_async(waiting: list[Any]) -> object:
    """Do as `answer`, without blocking the event loop."""
    import asyncio

    answers: list[object] = []
    for group in _groups(_answerable(waiting)):
        answers += await asyncio.gather(*(ask.ask_async(_prompt(item)) for item in group))
    return _command(waiting, answers)


def _groups(waiting: list[Any]) -> list[list[Any]]:
    return [waiting[at : at + _MAX_OPEN_QUESTIONS] for at in range(0, len(waiting), _MAX_OPEN_QUESTIONS)]


def _answerable(waiting: list[Any]) -> list[Any]:
    """Return the interrupts that one command can resume: before LangGraph 0.4 the first one."""
    return waiting if all(_id(item) for item in waiting) else waiting[:1]


def _command(waiting: list[Any], answers: list[object]) -> object:
    command: Any = sys.modules["langgraph.types"].Command
    if len(answers) == len(waiting) and all(_id(item) for item in waiting):
        return command(resume={_id(item): value for item, value in zip(waiting, answers, strict=True)})
    return command(resume=answers[0])


def _id(interrupt: Any) -> object:
    return getattr(interrupt, "id", None) or getattr(interrupt, "interrupt_id", None)


def _prompt(interrupt: Any) -> str:
    value = getattr(interrupt, "value", "")
    return value if isinstance(value, str) else json.dumps(json_safe(value), ensure_ascii=False)
