"""Runs workflows and agents of LlamaIndex. Called by `prompts` and `call`.

Uses names of classes, not the classes: LlamaIndex moved them into a package of their own.
"""

from __future__ import annotations

import json
import sys

from ...jsonsafe import json_safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import Any

PACKAGES = ("workflows.", "llama_index.")
_AGENTS = ("AgentWorkflow", "BaseWorkflowAgent")
_MESSAGE_KEYS = ("user_msg", "chat_history")


def is_workflow(target: object) -> bool:
    """Return whether the target is a workflow or an agent of LlamaIndex, not a class of one."""
    return not isinstance(target, type) and is_kind(target, "Workflow")


def is_kind(value: object, *names: str) -> bool:
    """Return whether a class of LlamaIndex with one of these names is the value's own or a base of it."""
    return any(
        kind.__name__ in names and kind.__module__.startswith(PACKAGES) for kind in type(value).__mro__
    )


def new_instance(kind: type[Any]) -> object:
    """Return an object of the class, a workflow without LlamaIndex's limit of 45 s: the run has its own.

    A class with an `__init__` of its own sets the limit itself.
    """
    if any(base.__name__ == "Workflow" and base.__module__.startswith(PACKAGES) for base in kind.__mro__):
        own = getattr(kind.__init__, "__module__", "")
        if own.startswith(PACKAGES):
            workflow: object = kind(timeout=None)
            return workflow
    instance: object = kind()
    return instance


def run_workflow(workflow: Any, inputs: dict[str, object], prompt: object) -> Awaitable[object]:
    """Return what runs the workflow and returns its result, asking a person where it does.

    Fields of the input are the arguments of its run; an agent gets the prompt as the user's message. Raises
    ValueError if the input lacks a field.
    """
    return _run(workflow, _arguments(workflow, inputs, prompt))


async def _run(workflow: Any, arguments: dict[str, object]) -> object:
    import asyncio

    handler = workflow.run(**arguments)
    asking = asyncio.ensure_future(_answer_questions(workflow, handler))
    ended = asyncio.ensure_future(_ended(handler))
    await asyncio.wait((asking, ended), return_when=asyncio.FIRST_COMPLETED)
    if not ended.done() and asking.exception() is not None:
        ended.cancel()  # it waits for an answer that does not come
        await asking
    try:
        return result_of(await ended)
    except Exception as error:
        if type(error).__name__ == "WorkflowTimeoutError":
            error.add_note(
                "That is the limit of the workflow, not of the run: make the workflow with timeout=None."
            )
        raise
    finally:
        asking.cancel()


def result_of(value: Any) -> object:
    """Return the output in a workflow's result: an agent's answer, the fields of a StopEvent of the crew."""
    if is_kind(value, "AgentOutput"):
        structured = getattr(value, "structured_response", None)
        return structured if structured is not None else str(value)
    if is_kind(value, "StopEvent"):
        return fields_of(value)
    same: object = value
    return same


def fields_of(event: Any) -> dict[str, object]:
    """Return the fields of an event, declared or not."""
    fields = dict(event.model_dump())
    others = fields.pop("_data", None)
    return {**fields, **(others if isinstance(others, dict) else {})}


def _arguments(workflow: Any, inputs: dict[str, object], prompt: object) -> dict[str, object]:
    """Return the arguments of `run`. Raises ValueError where the input lacks a field of the start event."""
    if is_kind(workflow, *_AGENTS):
        if any(key in inputs for key in _MESSAGE_KEYS):
            return inputs
        return {"user_msg" if isinstance(prompt, str) else "chat_history": prompt}
    event = getattr(workflow, "start_event_class", None) or getattr(workflow, "_start_event_class", None)
    fields = getattr(event, "model_fields", None) or {}
    missing = [name for name, field in fields.items() if field.is_required() and name not in inputs]
    if missing:
        example = ", ".join(f'"{name}": …' for name in missing)
        raise ValueError(f"The workflow's start event needs an input; start the run with {{{example}}}.")
    return inputs


async def _ended(handler: Any) -> object:
    result: object = await handler
    return result


async def _answer_questions(workflow: Any, handler: Any) -> None:
    """Read the events of the run until its end, and answer each InputRequiredEvent."""
    asked: list[object] = []
    async for event in handler.stream_events():
        # A step may write the event that it returns to the stream, too.
        if is_kind(event, "InputRequiredEvent") and not any(event is one for one in asked):
            asked.append(event)
            handler.ctx.send_event(await _answer(workflow, event))


async def _answer(workflow: Any, event: Any) -> object:
    """Return the HumanResponseEvent for a question: with a text, or the fields of the crew's own class."""
    from ...questions.ask import ask_async
    from ...questions.question import InputRequired, impossible

    fields = fields_of(event)
    prompt = str(fields.pop("prefix", "") or json.dumps(json_safe(fields), ensure_ascii=False))
    kinds = _response_kinds(workflow)
    is_own = not type(event).__module__.startswith(PACKAGES)
    if len(kinds) > 1 or (is_own and not kinds):
        why = f"which event answers {type(event).__name__} is not clear from the steps of the workflow"
        raise InputRequired(impossible(prompt, why))
    if kinds and kinds[0].model_fields:
        answer = await ask_async(prompt, schema=kinds[0].model_json_schema())
        response: object = kinds[0](**answer)  # type: ignore[arg-type]
        return response
    text = await ask_async(prompt, schema={"type": "string"})
    make = kinds[0] if kinds else vars(sys.modules[type(event).__module__])["HumanResponseEvent"]
    return make(**{**fields, "response": text})


def _response_kinds(workflow: Any) -> list[Any]:
    """Return the classes of HumanResponseEvent that steps of the workflow take; those with fields, if any."""
    kinds = [
        kind
        for kind in dict.fromkeys(getattr(workflow, "events", ()))
        if any(
            base.__name__ == "HumanResponseEvent" and base.__module__.startswith(PACKAGES)
            for base in kind.__mro__
        )
    ]
    return [kind for kind in kinds if kind.model_fields] or kinds
