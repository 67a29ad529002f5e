"""Which paths the input `exclude` leaves out. Pure. Called by `actions.workflow.source.pack`.

The same language as `[build] exclude` of a crew's configuration: `*`, `?`, `[…]`
within a name, `**` for any number of directories, `/` at the end for directories,
`!` to take back in. A pattern with a `/` before its end is anchored at the root.
The last pattern that matches a path or a directory above it decides.
"""

import re
from collections.abc import Iterable

from actions.workflow.errors import Failed

_PATTERNS, _LETTERS = 200, 256


class Patterns:
    """The patterns, in their order. Raises Failed for one that means nothing."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._patterns = [(_compiled(text), not text.startswith("!")) for text in texts]
        if len(self._patterns) > _PATTERNS:
            raise Failed(f"The input exclude has more than {_PATTERNS} patterns; name directories.")

    def leave_out(self, path: str) -> bool:
        """Whether the file `path`, written with `/`, is left out."""
        out = False
        for pattern, leaves_out in self._patterns:
            if out != leaves_out and pattern.fullmatch(path):
                out = leaves_out
        return out


def _compiled(text: str) -> re.Pattern[str]:
    body = text.removeprefix("!")
    names = [name for name in body.removeprefix("./").split("/") if name]
    if not names or len(text) > _LETTERS or "\\" in body or "." in names or ".." in names:
        raise Failed(
            f"The input exclude has {text[:80]!r}, which is no pattern for paths. "
            "For example: tests, data/*.csv, **/notes.md, !data/small.csv."
        )
    if names[-1] == "**":
        names.append("*")
    if "/" not in body.rstrip("/"):
        names.insert(0, "**")
    whole = "".join("(?:[^/]+/)*" if name == "**" else _name(name) + "/" for name in names)
    below = "/.+" if body.endswith("/") else "(?:/.+)?"
    return re.compile(f"(?s:{whole.removesuffix('/')}{below})")


def _name(name: str) -> str:
    """One name's pattern; `[` without its `]` is itself."""
    found, at = "", 0
    while at < len(name):
        letter = name[at]
        end = name.find("]", at + 3 if name[at + 1 : at + 2] == "!" else at + 2) if letter == "[" else -1
        if end > 0:
            inside = re.sub(r"([\\\[\]^&~|])", r"\\\1", name[at + 1 : end].removeprefix("!"))
            found += f"(?!/)[{'^' if name[at + 1] == '!' else ''}{inside}]"
            at = end
        else:
            found += {"*": "[^/]*", "?": "[^/]"}.get(letter, re.escape(letter))
        at += 1
    try:
        re.compile(found)
    except re.error:  # A range that runs backwards matches nothing.
        return "(?!)"
    return found
