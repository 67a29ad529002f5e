"""Answers to questions of runs, from the API and from Run objects. Called by their routes and projection."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

from api import errors
from api.http.json_encoding import without_surrogates
from api.questions import answer_schema
from api.store.index.runs.input_requests import AnswerState, InputRequest
from api.store.index.runs.inputs import canonical
from api.store.store import Store
from crds.json_depth import too_deep
from crds.objects import Run

MAX_ANSWER_BYTES = 1024 * 1024
OBJECT_AUTHOR = "kubectl"
"""Who answered in `spec.answers`, which does not say more."""
OnAnswer = Callable[[], None]


async def check(value: Any, request: InputRequest) -> None:
    """Raise a 400 with the field, or a 413, if the answer does not fit the question."""
    if too_deep(value):
        raise errors.invalid("value is nested too deeply", "value")
    if len(canonical(value)) > MAX_ANSWER_BYTES:
        raise errors.too_large(MAX_ANSWER_BYTES, "value")
    if request.schema is not None or request.choices is not None:
        await asyncio.to_thread(answer_schema.check_answer, value, request.schema, request.choices)


async def apply_object_answers(
    store: Store, run: Run, now: datetime, on_answer: OnAnswer = lambda: None
) -> None:
    """Store the answers in a Run object, each in its order: the first that fits a question counts.

    Idempotent: the answers to questions that are no longer open change nothing.
    """
    given = run.spec.get("answers") or ()
    if run.ended or not given:
        return
    waiting = {item.id: item for item in await store.input_requests.unanswered(run.name)}
    refusals: dict[str, str] = {}
    for answer in given:
        request = waiting.get(str(answer.get("request")))
        if request is None:
            continue
        try:
            await check(answer.get("value"), request)
        except errors.HttpApiError as refusal:
            # It names the choices of the crew.
            refusals[request.id] = without_surrogates(refusal.message)
            continue
        state = await store.input_requests.answer(
            run.name, request.id, answer.get("value"), OBJECT_AUTHOR, now
        )
        if state is AnswerState.ACCEPTED:
            on_answer()
            del waiting[request.id]
    # One write for a question, and none without news: it leads to another version of this object.
    for identifier, message in refusals.items():
        if identifier in waiting and waiting[identifier].refusal != message:
            await store.input_requests.note_refusal(run.name, identifier, message)
