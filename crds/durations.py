"""Durations in the format of the custom resources: `90s`, `30m`, `1h30m`.

Called by crds.limits, the controller and the API. Standard library only.
"""

import re

_PATTERN = re.compile(r"^(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$", re.ASCII)


def seconds(text: str) -> int:
    """Return the duration in whole seconds. Raises ValueError with an example for an invalid text or zero."""
    match = _PATTERN.match(text)
    hours, minutes, secs = (int(part or 0) for part in match.groups()) if match else (0, 0, 0)
    total = hours * 3600 + minutes * 60 + secs
    if total <= 0:
        raise ValueError(
            f"{text!r} is not a duration above zero; write hours, minutes and seconds, for example 1h30m"
        )
    return total


def text(total: int) -> str:
    """Return the shortest text for a number of seconds: 5400 → `1h30m`."""
    hours, remainder = divmod(total, 3600)
    minutes, secs = divmod(remainder, 60)
    return (
        "".join(f"{count}{unit}" for count, unit in ((hours, "h"), (minutes, "m"), (secs, "s")) if count)
        or "0s"
    )
