"""`POST /v1/runs/{id}/inputs/{request_id}`: answer a question that a run asks."""

from aiohttp import web

from api import errors
from api.http import operation, responses
from api.questions import answers
from api.routing.endpoint import Endpoint, EndpointCall
from api.store.index.runs.input_requests import AnswerState, InputRequest
from api.store.index.runs.runs import RunDetail
from api.v1 import lookup
from api.v1.runs import schema, view


async def answer(call: EndpointCall) -> web.StreamResponse:
    """Answer a question of a run. The first answer counts; 409 after it, and once the run has ended."""
    row = await lookup.run(call)
    store = call.services.store
    request = await store.input_requests.get(row.name, call.path("request_id"))
    if request is None:
        raise _unknown(call)
    if row.ended:
        raise errors.conflict(f"the run has already ended ({row.status})", status=row.status)
    if not request.is_open(call.services.now()):
        raise _closed(request)
    value = call.body["value"]
    await answers.check(value, request)
    now = call.services.now()
    state = await store.input_requests.answer(row.name, request.id, value, call.caller.key_id, now)
    if state is not AnswerState.ACCEPTED:
        raise await _refusal(call, row, request)
    call.services.metrics.questions.labels("answered").inc()
    return responses.item(view.answered(request, now, call.caller.key_id))


async def _refusal(call: EndpointCall, row: RunDetail, request: InputRequest) -> errors.HttpApiError:
    """Return the 409 of a question that was answered or closed, or whose run ended, since it was read."""
    current = await call.services.store.input_requests.get(row.name, request.id)
    if current is None:
        return _unknown(call)
    if current.is_open(call.services.now()):
        return errors.conflict("the run has ended")
    return _closed(current)


def _unknown(call: EndpointCall) -> errors.HttpApiError:
    return errors.not_found(
        f"the run has no question {call.path('request_id')[:100]!r}; its questions are in input_requests of "
        f"GET /v1/runs/{call.path('id')[:64]}"
    )


def _closed(request: InputRequest) -> errors.HttpApiError:
    if request.answered_at is not None:
        return errors.conflict("the question is already answered; the first answer counts")
    return errors.conflict("the crew no longer waits for an answer to this question")


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/runs/{id}/inputs/{request_id}",
        answer,
        "run",
        body=schema.ANSWER,
        summary="Answer a question of a run",
        responses=(operation.item_response(schema.ANSWERED, schema.ANSWERED_EXAMPLE),),
        error_statuses=(409, 413),
        example=schema.ANSWER_EXAMPLE,
    ),
)
