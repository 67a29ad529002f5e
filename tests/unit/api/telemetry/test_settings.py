"""Settings of the export of traces."""

import pytest

from api.telemetry.settings import TelemetrySettings, parse_telemetry

URL = "http://collector.example.com:4318"


def test_it_is_off_without_an_endpoint():
    assert parse_telemetry("", "authorization=x", "on") is None


def test_an_endpoint_is_a_base_url_and_headers_are_decoded():
    found = parse_telemetry(f"{URL}/otel/", "authorization=Bearer%20a%3Db, x-tenant=crews", "on")
    assert found == TelemetrySettings(
        f"{URL}/otel/v1/traces", {"authorization": "Bearer a=b", "x-tenant": "crews"}, True
    )
    assert (
        parse_telemetry(URL, "", "off")
        == parse_telemetry(URL, "", "")
        == TelemetrySettings(f"{URL}/v1/traces")
    )
    assert "Bearer" not in repr(found)


@pytest.mark.parametrize(
    ("endpoint", "headers", "content", "message"),
    [
        ("collector:4317", "", "", "CREWYARD_OTLP_ENDPOINT: must be an http"),
        ("grpc://collector:4317", "", "", "CREWYARD_OTLP_ENDPOINT"),
        ("http://user:secret@collector:4318", "", "", "CREWYARD_OTLP_ENDPOINT"),
        (f"{URL}/?a=b", "", "", "CREWYARD_OTLP_ENDPOINT"),
        (URL, "authorization", "", "CREWYARD_OTLP_HEADERS: header 1"),
        (URL, "a=b,two words=c", "", "CREWYARD_OTLP_HEADERS: header 2"),
        (URL, "a=x%0d%0ab: c", "", "CREWYARD_OTLP_HEADERS: header 1"),
        (URL, "Content-Type=text/plain", "", "CREWYARD_OTLP_HEADERS: Content-Type"),
        (URL, "", "true", "CREWYARD_OTLP_CONTENT: must be on or off"),
    ],
)
def test_a_wrong_value_names_its_variable(endpoint, headers, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        parse_telemetry(endpoint, headers, content)
    assert "secret" not in str(caught.value)
