"""The installation's limits, as api and controller read them alike.

`CREWYARD_LIMITS` is a JSON object of the names below; what it leaves out is as here. `CREWYARD_MAX_UPLOAD` is
the older way to say `context_bytes`. Called once by the settings of both processes; all else takes the frozen
Limits, so that what the one accepts the other does not refuse. docs/settings.md has the table.

Some ceilings are not ours to raise: an object of Kubernetes holds little, and an image that was built carries
the runner it was built with, whose buffers are what they were.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

NAME = "CREWYARD_LIMITS"
UPLOAD = "CREWYARD_MAX_UPLOAD"
_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_DAY = 24 * 3600


def _limit(default: int, least: int, most: int) -> Any:
    return field(default=default, metadata={"least": least, "most": most})


@dataclass(frozen=True)
class Limits:
    """Bytes, seconds and counts; what each is for stands in docs/settings.md."""

    context_bytes: int = _limit(100 * _MIB, 1, 5 * _GIB)
    """A bucket takes no more in one piece."""
    unpacked_bytes: int = _limit(_GIB, 1, 64 * _GIB)
    entries: int = _limit(50_000, 1, 1_000_000)
    ratio: int = _limit(100, 1, 1032)
    """Nothing that is deflated grows by more."""
    input_bytes: int = _limit(_MIB, 2, 2 * _MIB)
    """A runner takes 8 MiB as an answer, and JSON may write a byte as three."""
    input_inline_bytes: int = _limit(16 * _KIB, 2, 256 * _KIB)
    input_object_bytes: int = _limit(256 * _KIB, 2, 256 * _KIB)
    """More does not fit into the annotation that `kubectl apply` makes of an object."""
    output_bytes: int = _limit(32 * _KIB, 2, 32 * _KIB)
    """The schema of a Run has no more."""
    event_bytes: int = _limit(64 * _KIB, 4 * _KIB, 64 * _KIB)
    log_lines: int = _limit(1_000_000, 0, 100_000_000)
    artifacts: int = _limit(1000, 1, 100_000)
    """A runner looks at no more files."""
    artifact_bytes: int = _limit(_GIB, 1, 1024 * _GIB)
    queue: int = _limit(1000, 1, 100_000)
    run_seconds: int = _limit(3600, 1, 7 * _DAY)
    run_max_seconds: int = _limit(_DAY, 1, 7 * _DAY)
    start_seconds: int = _limit(300, 1, 3600)
    unschedulable_seconds: int = _limit(3600, 1, _DAY)
    build_seconds: int = _limit(1800, 1, _DAY)


KEYS: Mapping[str, tuple[int, int]] = {
    one.name: (one.metadata["least"], one.metadata["most"]) for one in fields(Limits)
}
"""Each limit's least and greatest value."""
_WITHIN = (
    ("run_seconds", "run_max_seconds"),
    ("input_object_bytes", "input_bytes"),
    ("input_inline_bytes", "input_bytes"),
)
"""The first is never above the second: its default follows, and what says otherwise is wrong."""


def read_limits(environ: Mapping[str, str], wrong: list[str]) -> Limits:
    """The limits of an environment. A line for each that is wrong goes to `wrong`, with what is allowed."""
    given = dict(_given(environ.get(NAME, ""), wrong))
    upload = _upload(environ.get(UPLOAD, ""), wrong)
    if upload is not None:
        said = given.setdefault("context_bytes", upload)
        if said != upload:
            wrong.append(f"{UPLOAD}: is {upload}, but {NAME} has context_bytes {said}; leave one of them out")
    defaults = Limits()
    for lower, upper in _WITHIN:
        most = given.get(upper, getattr(defaults, upper))
        if lower in given and given[lower] > most:
            wrong.append(f"{NAME}: {lower} is {given[lower]}, above {upper}, {most}; change one of them")
        elif lower not in given:
            given[lower] = min(getattr(defaults, lower), most)
    return Limits(**given)


def _given(text: str, wrong: list[str]) -> Iterable[tuple[str, int]]:
    """The limits that are said and may be so."""
    if not text.strip():
        return
    try:
        found = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, tuple):
        wrong.append(f'{NAME}: must be a JSON object, such as {{"queue": 1000, "run_max_seconds": 86400}}')
        return
    seen: set[str] = set()
    for name, value in found:
        if name not in KEYS:
            wrong.append(f"{NAME}: there is no limit {name[:100]!r}; there are {', '.join(sorted(KEYS))}")
        elif name in seen:
            wrong.append(f"{NAME}: {name} is given twice")
        elif type(value) is not int or not KEYS[name][0] <= value <= KEYS[name][1]:
            least, most = KEYS[name]
            shown = json.dumps(value, default=str)[:40]
            wrong.append(f"{NAME}: {name} must be a whole number from {least} to {most}, not {shown}")
        else:
            yield name, value
        seen.add(name)


def _upload(text: str, wrong: list[str]) -> int | None:
    if not text.strip():
        return None
    least, most = KEYS["context_bytes"]
    try:
        value = int(float(text))
    except (ValueError, OverflowError):
        value = 0
    if not least <= value <= most:
        wrong.append(f"{UPLOAD}: must be a number of bytes from {least} to {most}, for example {100 * _MIB}")
        return None
    return value
