"""What may reach a terminal: what a crew, a commit or the service says must not move its cursor. Pure.

Called by `crewyard.cli.output`.
"""

import re

_CONTROL = re.compile(
    r"(?P<colour>\x1b\[[0-9;:]*m)|(?P<end>\r+(?=\n|\Z))|(?P<back>\r)|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


def harmless(text: str, colours: bool = False) -> str:
    """The text with control characters as one can read them (`\\x1b`), but for tabs and line feeds.

    With `colours` those of a terminal stay; what would overwrite a line begins another one.
    """

    def shown(found: re.Match[str]) -> str:
        if found["colour"] is not None and colours:
            return found[0]
        if found["end"] is not None:
            return ""
        if found["back"] is not None:
            return "\n"
        return "".join(f"\\x{ord(letter):02x}" if ord(letter) < 32 or 127 <= ord(letter) < 160 else letter
                       for letter in found[0])  # fmt: skip

    return _CONTROL.sub(shown, text)
