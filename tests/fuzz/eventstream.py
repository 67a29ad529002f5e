"""Server-Sent Events read by the letter of the standard (WHATWG HTML 9.2.6), without Crewyard's code."""

import re
from collections.abc import Iterator


def messages(text: str) -> Iterator[tuple[str, str, str]]:
    """Type, data and last id of each message in a whole stream."""
    last_id, kind, data = "", "", ""
    for line in re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff")):
        if line == "":
            if data:
                yield kind or "message", data[:-1], last_id
            kind, data = "", ""
            continue
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "event":
            kind = value
        elif field == "data":
            data += value + "\n"
        elif field == "id" and "\0" not in value:
            last_id = value
