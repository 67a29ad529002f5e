"""Durations as the kinds write them: `90s`, `30m`, `1h30m`.

Called by the plan's limits, the controller and the facade. Standard library only.
"""

import re

_PATTERN = re.compile(r"^(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$", re.ASCII)


def seconds(text: str) -> int:
    """The duration in whole seconds. Raises ValueError, with an example, where it is none or is zero."""
    found = _PATTERN.match(text)
    hours, minutes, rest = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
    total = hours * 3600 + minutes * 60 + rest
    if total <= 0:
        raise ValueError(
            f"{text!r} is no duration above zero; write hours, minutes and seconds, for example 1h30m"
        )
    return total


def text(total: int) -> str:
    """The shortest text of a number of seconds: 5400 → `1h30m`."""
    hours, rest = divmod(total, 3600)
    minutes, last = divmod(rest, 60)
    return (
        "".join(f"{count}{unit}" for count, unit in ((hours, "h"), (minutes, "m"), (last, "s")) if count)
        or "0s"
    )
