"""The encoding of spans."""

from datetime import UTC, datetime

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from api.telemetry import otlp
from api.telemetry.span import Span
from tests.unit.api.telemetry.trace_rows import at


def span(number: int = 1, **fields) -> Span:
    values = {
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "span_id": f"{number:016x}",
        "parent_id": None,
        "name": "run demo",
        "start": at(0),
        "end": at(1.5),
        "attributes": {},
    }
    return Span(**{**values, **fields})


def sent(spans) -> list:
    bodies = otlp.requests(spans, {"service.name": "crewyard"})
    return [ExportTraceServiceRequest.FromString(body).resource_spans[0] for body in bodies]


def test_a_span_has_all_of_its_fields():
    attributes = {"text": "t\ud800", "count": 7, "share": 0.5, "flag": True}
    [found] = sent([span(parent_id="00f067aa0ba902b7", attributes=attributes, error="no", is_client=True)])
    assert found.resource.attributes[0].value.string_value == "crewyard"
    [scope] = found.scope_spans
    [message] = scope.spans
    assert (scope.scope.name, message.name, message.kind) == ("crewyard", "run demo", 3)
    assert message.trace_id.hex() == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert (message.span_id.hex(), message.parent_span_id.hex()) == ("0" * 15 + "1", "00f067aa0ba902b7")
    assert message.start_time_unix_nano == 1_795_255_200_250_000_000
    assert message.end_time_unix_nano - message.start_time_unix_nano == 1_500_000_000
    assert (message.status.code, message.status.message) == (2, "no")
    values = {item.key: item.value for item in message.attributes}
    assert values["text"].string_value == "t?"
    assert (values["count"].int_value, values["share"].double_value) == (7, 0.5)
    assert values["flag"].bool_value is True


def test_a_time_outside_of_64_bits_is_the_nearest_one():
    [found] = sent([span(start=datetime(1969, 1, 1, tzinfo=UTC), end=datetime(9999, 12, 31, tzinfo=UTC))])
    [message] = found.scope_spans[0].spans
    assert (message.start_time_unix_nano, message.end_time_unix_nano) == (0, 2**64 - 1)


def test_many_spans_are_several_requests():
    spans = [span(number) for number in range(1, 1200)]
    parts = sent(spans)
    assert [len(part.scope_spans[0].spans) for part in parts] == [512, 512, 175]
    large = [span(number, attributes={"text": "x" * 8192}) for number in range(1, 301)]
    sizes = [part.ByteSize() for part in sent(large)]
    assert len(sizes) == 3 and max(sizes) < otlp.MAX_REQUEST_BYTES + 10_000
    assert sent([]) == []


def test_rejected_spans_are_counted():
    partial = ExportTracePartialSuccess(rejected_spans=3, error_message="too old")
    body = ExportTraceServiceResponse(partial_success=partial).SerializeToString()
    assert otlp.rejected(body) == (3, "too old")
    assert otlp.rejected(b"") == otlp.rejected(b"\xff{}") == (0, "")
