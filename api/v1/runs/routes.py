"""Routes of runs: create, repeat, list, get, cancel, erase."""

from dataclasses import replace
from datetime import datetime

from aiohttp import web

from api import errors
from api.http import operation, pagination, responses
from api.http.query import Parameter
from api.routing.endpoint import EXPIRES, Endpoint, EndpointCall
from api.store import accounting
from api.store.index.runs.filtered_listing import RunSelection
from api.v1 import idempotency, lookup, wait
from api.v1.fields import DEPLOYMENT_ID, PROJECT_NAME, TIMESTAMP
from api.v1.runs import schema, start, view
from crds import names
from crds.kinds import RUN
from crds.objects import Run
from crds.runs import labels as run_labels
from crds.times import parse_time
from kube import errors as kube_errors


async def create(call: EndpointCall) -> web.StreamResponse:
    """Create a run. After 201 the run is stored durably."""
    start.check_sizes(call, call.body)
    start.check_timeout(call.body, call.services.config.limits)
    use = start.idempotency_use(call)
    return await start.repeated(call, use) or await start.start(call, call.body, use)


async def rerun(call: EndpointCall) -> web.StreamResponse:
    """Start a run like an earlier one: with its input, entrypoint, config, context, timeout and labels.

    `input`, `deployment` and `entrypoint` replace those of the earlier run.
    """
    row, use = await lookup.run(call), start.idempotency_use(call)
    if (response := await start.repeated(call, use)) is not None:
        return response
    given = call.body.get("input", row.input)
    if given is None:
        raise errors.conflict("the input of this run was never stored; pass input", field="input")
    labels = run_labels.shown(row.labels or {}) or {}
    labels.pop(names.LABEL_SCHEDULE, None)
    body = {
        "deployment": names.id_of(row.deployment) if row.deployment else row.project,
        "entrypoint": row.entrypoint,
        "timeout": row.timeout,
        "config": row.config,
        "context": row.context,
        "labels": labels or None,
        **call.body,
        "input": given,
    }
    body = {name: value for name, value in body.items() if value is not None}
    start.check_sizes(call, body)
    return await start.start(call, body, use, row.name)


def _moment(text: str | None, field: str) -> datetime | None:
    try:
        return None if text is None else parse_time(text)
    except ValueError as error:
        raise errors.invalid(f"{field}: {error}", field) from error


async def list_runs(call: EndpointCall) -> web.StreamResponse:
    """List runs, filtered by project, deployment, status, label and time of creation.

    With `label`, `created_after` or `created_before`, the newest creation comes first, and about 100 runs
    are counted; with `total_capped` at least `total` match.
    """
    query, page = call.query, call.page
    if query["project"] is not None:
        call.caller.require_project(query["project"], "project")
    result = await call.services.store.runs.page(
        page.offset,
        page.size,
        project=query["project"],
        deployment=names.name_of(query["deployment"]) if query["deployment"] else None,
        statuses=query["status"].split(",") if query["status"] else None,
        projects=call.caller.grants.projects_with("read"),
        selection=RunSelection(
            tuple(query["label"].split(",")) if query["label"] else (),
            _moment(query["created_after"], "created_after"),
            _moment(query["created_before"], "created_before"),
        ),
    )
    prices = call.services.config.prices
    return responses.page([view.item(row, prices) for row in result.items], result.total, page, result.capped)


async def get(call: EndpointCall) -> web.StreamResponse:
    """Get a run, with its position in its project's queue and its open questions."""
    row, services = await start.wait_ended(call, call.path("id"), call.query["wait"] or 0), call.services
    position = await services.store.run_queue.position(row, services.config.plans)
    questions = await services.store.input_requests.open_of(row, services.now())
    response = responses.item(
        view.detail(
            row,
            services.config.public_url,
            services.config.prices,
            position,
            services.config.docs_url,
            questions,
        )
    )
    if questions:
        response[EXPIRES] = True
    return response


async def cancel(call: EndpointCall) -> web.StreamResponse:
    """Cancel a run. 200 if it is already canceled, 409 if it has succeeded or failed."""
    row, config = await lookup.run(call), call.services.config
    if not row.ended:
        try:
            patch = {"metadata": {"uid": row.uid}, "spec": {"cancel": True}}
            raw = await call.services.kube.at(row.object_namespace).patch(RUN, row.name, patch)
        except (kube_errors.Invalid, kube_errors.KubeNotFound):
            # The run ended meanwhile or was deleted; the row shows it once the end is recorded.
            row = await lookup.run(call)
            if not row.ended:
                raise errors.unavailable("the run is ending; repeat the request to see its outcome") from None
        else:
            # Record the cancellation before responding: later claims of pods are denied.
            await call.services.store.run_writer.observe(Run(raw), call.services.now())
            row = await lookup.run(call)
            return responses.item(view.detail(row, config.public_url, config.prices), 202)
    if row.status != "canceled":
        raise errors.conflict(f"the run has already ended ({row.status})", status=row.status)
    return responses.item(view.detail(row, config.public_url, config.prices))


async def erase(call: EndpointCall) -> web.StreamResponse:
    """Erase an ended run: its object, record, events and artifacts. 409 while it has not ended."""
    row, services = await lookup.run(call), call.services
    if not row.ended:
        raise errors.conflict("the run has not ended; cancel it first", status=row.status)
    store = services.store
    # Its usage stays: the project has spent it.
    await accounting.account_run(store, row.name)
    await services.kube.at(row.object_namespace).delete(RUN, row.name, uid=row.uid)
    # A late event of the watch changes nothing: the tombstone keeps the name.
    await store.expired_records.delete_run(row.name, services.now())
    return web.Response(status=204)


_CREATED = replace(
    operation.item_response(schema.CREATED, schema.CREATED_EXAMPLE, 201),
    optional_headers=(wait.APPLIED_HEADER,),
)
ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/runs",
        list_runs,
        "read",
        cacheable=True,
        query=(
            Parameter("project", PROJECT_NAME, description="A project's name."),
            Parameter("deployment", DEPLOYMENT_ID, description="A deployment's id."),
            Parameter("status", schema.STATUS_FILTER, expected=schema.STATUS_EXPECTED),
            Parameter("label", schema.LABEL_FILTER),
            Parameter("created_after", TIMESTAMP, description="Only runs created at this time or later."),
            Parameter("created_before", TIMESTAMP, description="Only runs created before this time."),
            *pagination.PAGE_PARAMETERS,
        ),
        summary="List runs",
        responses=(operation.page_response(schema.ITEM, schema.ITEM_EXAMPLE),),
        error_statuses=(403,),
    ),
    Endpoint(
        "POST",
        "/v1/runs",
        create,
        "run",
        body=schema.CREATE,
        headers=(idempotency.PARAMETER, wait.PREFER, start.TRACEPARENT),
        summary="Start a run",
        responses=(_CREATED,),
        error_statuses=(404, 409),
        example=schema.CREATE_EXAMPLE,
    ),
    Endpoint(
        "GET",
        "/v1/runs/{id}",
        get,
        "read",
        cacheable=True,
        query=(wait.WAIT,),
        summary="Get a run",
        responses=(operation.item_response(schema.DETAIL, schema.EXAMPLE),),
    ),
    Endpoint(
        "POST",
        "/v1/runs/{id}/rerun",
        rerun,
        "run",
        body=schema.RERUN,
        headers=(idempotency.PARAMETER, wait.PREFER, start.TRACEPARENT),
        summary="Run again",
        responses=(_CREATED,),
        error_statuses=(404, 409, 413),
        example=schema.RERUN_EXAMPLE,
    ),
    Endpoint(
        "DELETE",
        "/v1/runs/{id}",
        erase,
        "deploy",
        summary="Erase a run",
        responses=(operation.empty_response("The run is erased: its object, record, events and artifacts."),),
        error_statuses=(409,),
    ),
    Endpoint(
        "POST",
        "/v1/runs/{id}/cancel",
        cancel,
        "run",
        summary="Cancel a run",
        responses=(
            operation.item_response(
                schema.DETAIL, schema.EXAMPLE, description="The run is already canceled."
            ),
            operation.item_response(schema.DETAIL, schema.EXAMPLE, 202, "The run will be canceled."),
        ),
        error_statuses=(409,),
    ),
)
