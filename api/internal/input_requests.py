"""`POST /internal/v1/runs/{run}/inputs`: a run asks a person, waits for the answer, or closes the question.

Called by `api.internal.routes`. A runner repeats the call until it has the answer: nothing depends on this
process, and an answer that it never received is still stored.
"""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from api.http.json_encoding import without_surrogates
from api.internal import storage
from api.internal.context import InternalContext, PodApiError, authenticate_object, read_json, text_field
from api.internal.events import RUN_NOT_HELD
from api.questions import answer_schema
from api.store.index.runs.input_requests import InputRequest, Question, TooManyRequests
from crds.times import format_time

MAX_WAIT_SECONDS = 20.0
"""Less than the timeout of the runner's call."""
MAX_PROMPT_CHARACTERS = 8192
_ID = re.compile(r"[a-z0-9]{1,32}")


async def ask(context: InternalContext, request: web.Request) -> web.Response:
    """Store the question once, and wait for its answer. 422 if a run cannot ask this."""
    run = request.match_info["run"]
    authenticate_object(context, request, "run", run)
    body = await read_json(request)
    pod, nonce = text_field(body, "pod_uid"), text_field(body, "nonce")
    identifier = text_field(body, "request_id", 32)
    if not _ID.fullmatch(identifier):
        raise PodApiError(400, "request_id must be 1 to 32 lower-case letters and digits")
    requests = context.store.input_requests
    if not await context.store.claims.holds(run, pod, nonce):
        raise PodApiError(409, RUN_NOT_HELD)
    if body.get("done") is True:
        if await requests.close(run, identifier):
            context.on_question("unanswered")
        return web.json_response({"state": "closed"})
    seconds = _seconds(body, "wait_seconds", 0.0, MAX_WAIT_SECONDS)
    mark = requests.mark
    stored = await requests.get(run, identifier) or await _open(context, run, identifier, body)
    deadline = asyncio.get_running_loop().time() + seconds
    while stored.is_open(datetime.now(UTC)):
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0 or requests.shutting_down:
            break
        expires_in = (stored.expires_at - datetime.now(UTC)).total_seconds()
        await requests.wait(run, mark, min(left, max(0.0, expires_in)))
        mark = requests.mark
        stored = await requests.get(run, identifier) or stored
    return web.json_response(_state(stored, datetime.now(UTC)))


async def _open(context: InternalContext, run: str, identifier: str, body: dict[str, Any]) -> InputRequest:
    prompt, schema, choices = body.get("prompt"), body.get("schema"), body.get("choices")
    if not isinstance(prompt, str) or len(prompt) > MAX_PROMPT_CHARACTERS:
        raise PodApiError(422, f"prompt must be a text of at most {MAX_PROMPT_CHARACTERS} characters")
    limit = float((await storage.limits_of(context, run)).ask_max_seconds)
    if not limit:
        raise PodApiError(422, "the limit ask_max_seconds of this project is 0: runs cannot ask")
    prompt, problem = without_surrogates(prompt), None
    if schema is not None:
        problem = await asyncio.to_thread(answer_schema.schema_problem, schema)
    if problem is None and choices is not None:
        problem = answer_schema.choices_problem(choices)
    if problem is not None:
        raise PodApiError(422, problem)
    context.store.volume.check_room()
    now = datetime.now(UTC)
    expires_at = now + timedelta(seconds=_seconds(body, "timeout_seconds", limit, limit))
    try:
        stored = await context.store.input_requests.open(
            run, Question(identifier, prompt, schema, choices), now, expires_at
        )
    except TooManyRequests as error:
        raise PodApiError(422, str(error)) from error
    context.on_question("asked")
    return stored


def _state(request: InputRequest, now: datetime) -> dict[str, Any]:
    """Return the state of a question as its runner sees it."""
    if request.answer is not None:
        state = {"state": "answered", "value": request.answer["value"], "by": request.answered_by}
    else:
        state = {"state": "waiting" if request.is_open(now) else "expired"}
    return {**state, "expires_at": format_time(request.expires_at)}


def _seconds(body: dict[str, Any], field: str, default: float, maximum: float) -> float:
    """Return a number of seconds of a body, at most `maximum`. Raises PodApiError 400."""
    value = body.get(field, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise PodApiError(400, f"{field} must be a number of at least 0")
    return min(float(value), maximum)
