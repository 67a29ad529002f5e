"""The installation's limits, read by API and controller from the same variables.

`CREWYARD_LIMITS` is a JSON object with the names below; omitted names have the defaults below.
`CREWYARD_MAX_UPLOAD` is the older form of `context_bytes`. The settings of both processes read them once and
pass on the frozen InstallationLimits, so both accept the same values. docs/settings.md has the table.

Some maxima are fixed: Kubernetes bounds the size of an object, and an existing image contains the runner of
its build with the buffer sizes of that time.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

LIMITS_VARIABLE = "CREWYARD_LIMITS"
MAX_UPLOAD_VARIABLE = "CREWYARD_MAX_UPLOAD"
_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_DAY = 24 * 3600


def _limit(default: int, minimum: int, maximum: int) -> Any:
    return field(default=default, metadata={"minimum": minimum, "maximum": maximum})


@dataclass(frozen=True)
class InstallationLimits:
    """Bytes, seconds and counts; docs/settings.md describes each."""

    context_bytes: int = _limit(100 * _MIB, 1, 5 * _GIB)
    """S3 buckets accept at most 5 GiB in one PUT."""
    unpacked_bytes: int = _limit(_GIB, 1, 64 * _GIB)
    entries: int = _limit(50_000, 1, 1_000_000)
    ratio: int = _limit(100, 1, 1032)
    """The maximum ratio of deflate."""
    image_bytes: int = _limit(20 * _GIB, _MIB, 1024 * _GIB)
    """Compressed, with the base image."""
    input_bytes: int = _limit(_MIB, 2, 2 * _MIB)
    """A runner reads responses of up to 8 MiB, and JSON may encode a byte as three."""
    input_inline_bytes: int = _limit(16 * _KIB, 2, 256 * _KIB)
    input_object_bytes: int = _limit(256 * _KIB, 2, 256 * _KIB)
    """More does not fit into the annotation that `kubectl apply` writes."""
    output_bytes: int = _limit(32 * _KIB, 2, 32 * _KIB)
    """The maximum in the schema of a Run."""
    event_bytes: int = _limit(64 * _KIB, 4 * _KIB, 64 * _KIB)
    log_lines: int = _limit(1_000_000, 0, 100_000_000)
    artifacts: int = _limit(1000, 1, 100_000)
    """The runner scans at most this many files."""
    artifact_bytes: int = _limit(_GIB, 1, 1024 * _GIB)
    queue: int = _limit(1000, 1, 100_000)
    run_seconds: int = _limit(3600, 1, 7 * _DAY)
    run_max_seconds: int = _limit(_DAY, 1, 7 * _DAY)
    ask_seconds: int = _limit(_DAY, 0, 30 * _DAY)
    ask_max_seconds: int = _limit(7 * _DAY, 0, 30 * _DAY)
    """0: runs cannot ask a person."""
    start_seconds: int = _limit(300, 1, 3600)
    unschedulable_seconds: int = _limit(3600, 1, _DAY)
    build_seconds: int = _limit(1800, 1, _DAY)
    build_max_seconds: int = _limit(4 * 3600, 1, _DAY)
    """At least `build_seconds` where only that one is set."""
    events: int = _limit(2_000_000, 1, 400_000_000)
    events_bytes: int = _limit(2 * _GIB, 1, 1024 * _GIB)
    events_per_second: int = _limit(10_000, 500, 1_000_000)
    """Of a project, for each API server."""
    open_streams: int = _limit(100_000, 1, 100_000)
    """Of the keys of a project, on each API server; never more than two thirds of what a server can have."""
    project_bytes: int = _limit(0, 0, 1024**2 * _GIB)
    """0: half of the API server's volume."""
    uploads_bytes: int = _limit(0, 0, 1024**2 * _GIB)
    """0: half of the API server's volume."""
    free_bytes: int = _limit(0, 0, 1024 * _GIB)
    """0: a fiftieth of the API server's volume, at most 512 MiB."""
    deployment_queue: int = _limit(100, 1, 10_000)
    retained_run_seconds: int = _limit(7 * _DAY, 1, 3650 * _DAY)
    retained_record_seconds: int = _limit(3650 * _DAY, 1, 3650 * _DAY)
    retained_deployments: int = _limit(1000, 1, 1000)
    """The maximum in the schema of a Project."""
    project_keys: int = _limit(1000, 1, 10_000)
    key_seconds: int = _limit(0, 0, 3650 * _DAY)
    """0: an API key needs no expiry."""
    warm_pods: int = _limit(10, 0, 100)
    """0: no pod waits for a run."""
    warm_builders: int = _limit(2, 0, 20)
    """0: no pod waits for a build."""
    warm_seconds: int = _limit(3600, 60, _DAY)
    audit_seconds: int = _limit(365 * _DAY, _DAY, 3650 * _DAY)
    audit_records: int = _limit(1_000_000, 1000, 100_000_000)


RANGES: Mapping[str, tuple[int, int]] = {
    limit.name: (limit.metadata["minimum"], limit.metadata["maximum"]) for limit in fields(InstallationLimits)
}
"""The minimum and maximum of each limit."""
_ORDERED_PAIRS = (
    ("run_seconds", "run_max_seconds"),
    ("ask_seconds", "ask_max_seconds"),
    ("build_seconds", "build_max_seconds"),
    ("input_object_bytes", "input_bytes"),
    ("input_inline_bytes", "input_bytes"),
)
"""The first limit must not exceed the second; its default is lowered where needed."""


def read_limits(environ: Mapping[str, str], errors: list[str]) -> InstallationLimits:
    """Read the limits from the environment; append a line with the allowed range per error to `errors`."""
    values = dict(_parse_limits(environ.get(LIMITS_VARIABLE, ""), errors))
    upload = _parse_max_upload(environ.get(MAX_UPLOAD_VARIABLE, ""), errors)
    if upload is not None:
        context_bytes = values.setdefault("context_bytes", upload)
        if context_bytes != upload:
            errors.append(
                f"{MAX_UPLOAD_VARIABLE}: is {upload}, but {LIMITS_VARIABLE} has context_bytes "
                f"{context_bytes}; omit one of them"
            )
    defaults = InstallationLimits()
    if "build_max_seconds" not in values:
        values["build_max_seconds"] = max(values.get("build_seconds", 0), defaults.build_max_seconds)
    for lower, upper in _ORDERED_PAIRS:
        maximum = values.get(upper, getattr(defaults, upper))
        if lower in values and values[lower] > maximum:
            errors.append(
                f"{LIMITS_VARIABLE}: {lower} is {values[lower]}, above {upper}, {maximum}; change one of them"
            )
        elif lower not in values:
            values[lower] = min(getattr(defaults, lower), maximum)
    # Each line is an event: where more lines are allowed, more events are.
    values.setdefault("events", max(defaults.events, 2 * values.get("log_lines", 0)))
    return InstallationLimits(**values)


def range_problem(name: str, value: object) -> str | None:
    """Return why this cannot be the value of a limit; None if it can."""
    minimum, maximum = RANGES[name]
    if type(value) is int and minimum <= value <= maximum:
        return None
    got = json.dumps(value, default=str)[:40]
    return f"{name} must be a whole number from {minimum} to {maximum}, not {got}"


def _parse_limits(text: str, errors: list[str]) -> Iterable[tuple[str, int]]:
    """Yield the valid limits of the variable."""
    if not text.strip():
        return
    try:
        pairs = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        pairs = None
    if not isinstance(pairs, tuple):
        errors.append(
            f'{LIMITS_VARIABLE}: must be a JSON object, such as {{"queue": 1000, "run_max_seconds": 86400}}'
        )
        return
    names_seen: set[str] = set()
    for name, value in pairs:
        if name not in RANGES:
            errors.append(
                f"{LIMITS_VARIABLE}: unknown limit {name[:100]!r}; known are {', '.join(sorted(RANGES))}"
            )
        elif name in names_seen:
            errors.append(f"{LIMITS_VARIABLE}: {name} is given twice")
        elif (problem := range_problem(name, value)) is not None:
            errors.append(f"{LIMITS_VARIABLE}: {problem}")
        else:
            yield name, value
        names_seen.add(name)


def _parse_max_upload(text: str, errors: list[str]) -> int | None:
    if not text.strip():
        return None
    minimum, maximum = RANGES["context_bytes"]
    try:
        value = int(float(text))
    except (ValueError, OverflowError):
        value = 0
    if not minimum <= value <= maximum:
        errors.append(
            f"{MAX_UPLOAD_VARIABLE}: must be a number of bytes from {minimum} to {maximum}, "
            f"for example {100 * _MIB}"
        )
        return None
    return value
