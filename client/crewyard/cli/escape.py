"""Escaping of control characters: untrusted text must not control the terminal. Pure.

Called by `crewyard.cli.output`.
"""

import re

_CONTROL = re.compile(
    r"(?P<colour>\x1b\[[0-9;:]*m)|(?P<end>\r+(?=\n|\Z))|(?P<back>\r)|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


def escape_control(text: str, colours: bool = False) -> str:
    """Return the text with control characters in readable form (`\\x1b`), except tabs and line feeds.

    With `colours`, colour sequences stay. A carriage return that would overwrite a line becomes a line feed.
    """

    def escaped(match: re.Match[str]) -> str:
        if match["colour"] is not None and colours:
            return match[0]
        if match["end"] is not None:
            return ""
        if match["back"] is not None:
            return "\n"
        return "".join(f"\\x{ord(letter):02x}" if ord(letter) < 32 or 127 <= ord(letter) < 160 else letter
                       for letter in match[0])  # fmt: skip

    return _CONTROL.sub(escaped, text)
