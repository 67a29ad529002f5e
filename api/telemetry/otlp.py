"""Spans as messages of OTLP. Pure. Called by `exporter`, which imports it only if there is a collector."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from api.http.json_encoding import without_surrogates
from api.telemetry.span import Attributes, AttributeValue, Span

CONTENT_TYPE = "application/x-protobuf"
SCOPE_NAME = "crewyard"
MAX_REQUEST_SPANS, MAX_REQUEST_BYTES = 512, 1 << 20
"""Of one request; a receiver usually takes 4 MiB or more."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_NANOSECONDS = (1 << 64) - 1
"""In the year 2554; a crew may report any year up to 9999."""


def requests(spans: Iterable[Span], resource: Attributes) -> Iterator[bytes]:
    """Yield bodies that together have all the spans, each of bounded size."""
    batch: list[trace_pb2.Span] = []
    size = 0
    for span in spans:
        message = _span(span)
        more = message.ByteSize()
        if batch and (len(batch) >= MAX_REQUEST_SPANS or size + more > MAX_REQUEST_BYTES):
            yield _request(batch, resource)
            batch, size = [], 0
        batch.append(message)
        size += more
    if batch:
        yield _request(batch, resource)


def rejected(body: bytes) -> tuple[int, str]:
    """Return how many spans a receiver did not take, and its explanation, from the body of a success."""
    try:
        partial = ExportTraceServiceResponse.FromString(body).partial_success
    except DecodeError:
        return 0, ""
    return partial.rejected_spans, partial.error_message


def _request(spans: list[trace_pb2.Span], resource: Attributes) -> bytes:
    scope = trace_pb2.ScopeSpans(scope=InstrumentationScope(name=SCOPE_NAME), spans=spans)
    of_resource = trace_pb2.ResourceSpans(
        resource=Resource(attributes=_attributes(resource)), scope_spans=[scope]
    )
    return ExportTraceServiceRequest(resource_spans=[of_resource]).SerializeToString()


def _span(span: Span) -> trace_pb2.Span:
    kind = trace_pb2.Span.SPAN_KIND_CLIENT if span.is_client else trace_pb2.Span.SPAN_KIND_INTERNAL
    status = trace_pb2.Status()
    if span.error is not None:
        status = trace_pb2.Status(
            code=trace_pb2.Status.STATUS_CODE_ERROR, message=without_surrogates(span.error)
        )
    return trace_pb2.Span(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id or ""),
        name=without_surrogates(span.name),
        kind=kind,
        start_time_unix_nano=_nanoseconds(span.start),
        end_time_unix_nano=_nanoseconds(span.end),
        attributes=_attributes(span.attributes),
        status=status,
    )


def _attributes(attributes: Attributes) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in attributes.items()]


def _value(value: AttributeValue) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(string_value=without_surrogates(value))


def _nanoseconds(moment: datetime) -> int:
    return min(max(0, (moment - _EPOCH) // timedelta(microseconds=1)) * 1000, _MAX_NANOSECONDS)
