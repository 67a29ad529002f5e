"""Settings of the export of traces. Part of `api.config`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from api.build_context.url import ContextUrlRefused, parse_url

TRACES_PATH = "/v1/traces"
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*", re.ASCII)
_OWN_HEADERS = ("content-type", "content-length", "host", "user-agent")


@dataclass(frozen=True)
class TelemetrySettings:
    """Where spans are sent to, with which headers, and whether with what agents and tools got and gave."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bool = False


def parse_telemetry(endpoint: str, headers: str, content: str) -> TelemetrySettings | None:
    """Parse the three variables; None without an endpoint. Raises ValueError that names the variable."""
    endpoint = endpoint.strip().rstrip("/")
    if not endpoint:
        return None
    try:
        parse_url(endpoint, None)
    except ContextUrlRefused as error:
        raise ValueError(
            f"CREWYARD_OTLP_ENDPOINT: {error}; for example http://collector.example.com:4318"
        ) from error
    if "?" in endpoint:
        raise ValueError("CREWYARD_OTLP_ENDPOINT: must be a base URL without query")
    if content not in ("", "on", "off"):
        raise ValueError("CREWYARD_OTLP_CONTENT: must be on or off")
    return TelemetrySettings(endpoint + TRACES_PATH, parse_headers(headers), content == "on")


def parse_headers(text: str) -> dict[str, str]:
    """Parse `name=value,name=value` with percent-encoded values. Raises ValueError without the values."""
    found: dict[str, str] = {}
    for number, part in enumerate(filter(None, (part.strip() for part in text.split(","))), 1):
        name, separator, value = part.partition("=")
        name, value = name.strip(), unquote(value.strip())
        if not separator or not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ValueError(
                f"CREWYARD_OTLP_HEADERS: header {number} must be name=value, the value percent-encoded; "
                "for example authorization=Bearer%20abc,x-tenant=crews"
            )
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"CREWYARD_OTLP_HEADERS: {name} cannot be set")
        found[name] = value
    return found
