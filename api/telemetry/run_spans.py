"""The spans of an ended run, by the conventions for generative AI. Pure. Called by `exporter`.

`run` has the whole time; below it are `queue`, `pod start`, and the crew (`invoke_workflow`) with its agents,
tools and model calls. The ids follow from the run's uid and the ids of its events: a repeated export is the
same spans.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from api.prices import Prices
from api.store.index.runs.runs import RunDetail
from api.store.index.usage import used_by
from api.telemetry.span import (
    CHAIN,
    MAX_MESSAGE_CHARACTERS,
    VIEWER_INPUT,
    VIEWER_KIND,
    VIEWER_OUTPUT,
    AttributeValue,
    Span,
    cut,
    without_none,
)
from api.telemetry.steps import MAX_CONTENT_CHARACTERS, RunStep, StepKind, StepReader, StepStatus, text_of
from crds import names
from crds.runs import trace_context
from crds.runs.trace_context import CREW_PART, RUN_PART

UNKNOWN_PROVIDER = "unknown"
PROVIDERS = ("anthropic", "cohere", "deepseek", "groq", "mistral_ai", "openai", "perplexity", "x_ai")
"""Names of providers in the conventions that a model's name may begin with, as in `openai/gpt-5`."""
VIEWER_KINDS = {StepKind.AGENT: "AGENT", StepKind.TOOL: "TOOL", StepKind.MODEL: "LLM"}
_OPERATION, _ERROR_TYPE = "gen_ai.operation.name", "error.type"
_OTHER_ERROR = "_OTHER"


@dataclass(frozen=True)
class _RunTimes:
    """When a run was created, got its slot, began and ended; `admitted` and `started` None: it did not."""

    created: datetime
    admitted: datetime | None
    started: datetime | None
    ended: datetime


def run_spans(
    row: RunDetail, reader: StepReader, content: bool, prices: Prices | None = None
) -> Iterator[Span]:
    """Return the spans of an ended run, the root first. `content`: also input, output and message."""
    if row.uid is None:
        return
    times, trace = _times(row), trace_context.trace_id(row.traceparent, row.uid)
    parent = trace_context.parse(row.traceparent)
    root = trace_context.span_id(row.uid, RUN_PART)
    failure = _failure(row, content)
    identity = _identity(row)
    viewed = _viewed(row.input, row.output) if content else {}
    yield Span(
        trace, root, parent.span_id if parent else None, f"run {row.project}", times.created, times.ended,
        without_none(
            {**identity, **_outcome(row), **_run_cost(row, prices), _ERROR_TYPE: _error_type(row), **viewed}
        ), failure,
    )  # fmt: skip
    queue_end = times.admitted or times.started or times.ended
    yield Span(
        trace, trace_context.span_id(row.uid, "queue"), root, "queue", times.created, queue_end, identity
    )
    if times.admitted is not None:
        start_failed = failure if times.started is None else None
        yield Span(
            trace, trace_context.span_id(row.uid, "pod start"), root, "pod start", times.admitted,
            times.started or times.ended,
            without_none({**identity, _ERROR_TYPE: _error_type(row) if start_failed else None}), start_failed,
        )  # fmt: skip
    if times.started is None:
        return
    crew = trace_context.span_id(row.uid, CREW_PART)
    steps = reader.finish(times.started, times.ended)
    workflow: dict[str, AttributeValue | None] = {
        _OPERATION: "invoke_workflow",
        "gen_ai.workflow.name": row.project,
        "crewyard.dropped_steps": reader.dropped or None,
        _ERROR_TYPE: _error_type(row),
    }
    if content:
        workflow |= {**_messages(row.input, row.output), **viewed}
    yield Span(
        trace, crew, root, f"invoke_workflow {row.project}", times.started, times.ended,
        without_none({**identity, **workflow}), failure,
    )  # fmt: skip
    for step in steps:
        yield _step_span(trace, crew, row.uid, step, identity, prices)


def _times(row: RunDetail) -> _RunTimes:
    """Return the times of an ended run, in their order: some are in whole seconds."""
    created, started = row.created_at, row.started_at
    ended = row.completed_at or created
    if started is not None:
        started = max(created, started)
        # The duration is exact, the time of the end is in whole seconds.
        ended = (
            started + timedelta(milliseconds=row.duration_ms or 0) if row.duration_ms is not None else ended
        )
    ended = max(ended, started or created)
    admitted = row.admitted_at
    if admitted is not None:
        admitted = min(max(created, admitted), started or ended)
    return _RunTimes(created, admitted, started, ended)


def _identity(row: RunDetail) -> dict[str, AttributeValue]:
    return without_none(
        {
            VIEWER_KIND: CHAIN,
            "crewyard.run.id": names.id_of(row.name),
            "crewyard.project": row.project,
            "crewyard.deployment.id": names.id_of(row.deployment) if row.deployment else None,
        }
    )


def _outcome(row: RunDetail) -> dict[str, AttributeValue | None]:
    return {
        "crewyard.run.status": row.status,
        "crewyard.run.reason": (row.error or {}).get("reason"),
        "crewyard.run.entrypoint": row.entrypoint,
        "crewyard.run.rerun_of": names.id_of(row.rerun_of) if row.rerun_of else None,
        "crewyard.run.smoke": True if names.is_smoke_run(row.name) else None,
        **{f"crewyard.run.label.{name}": value for name, value in (row.labels or {}).items()},
    }


def _run_cost(row: RunDetail, prices: Prices | None) -> dict[str, AttributeValue | None]:
    used = used_by(row)
    return _cost("run", prices, prices.cost(used) if prices and used else None)


def _call_cost(step: RunStep, prices: Prices | None) -> dict[str, AttributeValue | None]:
    tokens = step.prompt_tokens, step.completion_tokens
    if prices is None or tokens == (None, None):
        return {}
    return _cost("step", prices, prices.cost_of_tokens(step.name, *(count or 0 for count in tokens)))


def _cost(subject: str, prices: Prices | None, amount: float | None) -> dict[str, AttributeValue | None]:
    if prices is None or amount is None:
        return {}
    return {f"crewyard.{subject}.cost": amount, f"crewyard.{subject}.currency": prices.currency}


def _failure(row: RunDetail, content: bool) -> str | None:
    """Return why a run failed: the message only with content, as an exception may repeat input."""
    if row.status != "failed":
        return None
    error = row.error or {}
    why = (error.get("message") if content else None) or error.get("reason") or row.status
    return cut(str(why), MAX_MESSAGE_CHARACTERS)


def _error_type(row: RunDetail) -> str | None:
    return str((row.error or {}).get("reason") or _OTHER_ERROR) if row.status == "failed" else None


def _step_span(
    trace: str,
    crew: str,
    uid: str,
    step: RunStep,
    identity: Mapping[str, AttributeValue],
    prices: Prices | None,
) -> Span:
    name = " ".join(filter(None, (step.kind, step.name)))
    failed = step.status is StepStatus.FAILED
    attributes: dict[str, AttributeValue | None] = {
        **identity,
        **_viewed(step.input, step.output),
        VIEWER_KIND: VIEWER_KINDS[step.kind],
        _OPERATION: str(step.kind),
        "gen_ai.agent.name": step.agent,
        "crewyard.step.status": str(step.status),
        _ERROR_TYPE: _OTHER_ERROR if failed else None,
    }
    match step.kind:
        case StepKind.TOOL:
            attributes["gen_ai.tool.name"] = step.name
            attributes["gen_ai.tool.call.arguments"] = step.input
            attributes["gen_ai.tool.call.result"] = step.output
        case StepKind.MODEL:
            attributes |= {**_model(step), **_call_cost(step, prices)}
        case StepKind.AGENT:
            attributes |= _messages(step.input, step.output)
    return Span(
        trace,
        _step_id(uid, step.number),
        crew if step.parent is None else _step_id(uid, step.parent),
        name,
        step.start,
        step.end or step.start,
        without_none(attributes),
        step.error,
        is_client=step.kind is StepKind.MODEL,
    )


def _step_id(uid: str, number: int) -> str:
    return trace_context.span_id(uid, f"event {number}")


def _model(step: RunStep) -> dict[str, AttributeValue | None]:
    prefix = step.name.partition("/")[0]
    return {
        "gen_ai.provider.name": prefix if prefix in PROVIDERS else UNKNOWN_PROVIDER,
        "gen_ai.request.model": step.name or None,
        "gen_ai.usage.input_tokens": step.prompt_tokens,
        "gen_ai.usage.output_tokens": step.completion_tokens,
    }


def _messages(given: Any, returned: Any) -> dict[str, AttributeValue | None]:
    """Return what was given and returned, as messages of the conventions."""
    return {
        "gen_ai.input.messages": _message(given, role="user"),
        # Required of output messages, and "stop" is what agents and crews end with.
        "gen_ai.output.messages": _message(returned, role="assistant", finish_reason="stop"),
    }


def _message(value: Any, **fields: str) -> str | None:
    # Cut before encoding: the attribute stays JSON.
    text = _text(value)
    parts = [{"type": "text", "content": text}]
    return None if text is None else json.dumps([{**fields, "parts": parts}], ensure_ascii=False)


def _viewed(given: Any, returned: Any) -> dict[str, AttributeValue | None]:
    return {VIEWER_INPUT: _text(given), VIEWER_OUTPUT: _text(returned)}


def _text(value: Any) -> str | None:
    text = text_of(value)
    return None if text is None else cut(text, MAX_CONTENT_CHARACTERS)
