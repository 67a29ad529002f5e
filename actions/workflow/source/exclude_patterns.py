"""Patterns of the input `exclude`. Pure. Called by `actions.workflow.source.pack`.

The syntax of `[build] exclude` in crew.toml: `*`, `?`, `[…]` within a name, `**` for any number of
directories, a trailing `/` for directories, `!` to include again. A pattern with a `/` before its end is
anchored at the root. The last pattern that matches a path or one of its parent directories wins.
"""

import re
from collections.abc import Iterable

from actions.workflow.errors import StepFailed

_MAX_PATTERNS, _MAX_PATTERN_CHARS = 200, 256


class ExcludePatterns:
    """An ordered list of patterns. Raises StepFailed for an invalid one."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._patterns = [(_compile(text), not text.startswith("!")) for text in texts]
        if len(self._patterns) > _MAX_PATTERNS:
            raise StepFailed(f"The input exclude has more than {_MAX_PATTERNS} patterns; name directories.")

    def excludes(self, path: str) -> bool:
        """Return whether the patterns exclude the file `path`, written with `/`."""
        excluded = False
        for pattern, excludes in self._patterns:
            if excluded != excludes and pattern.fullmatch(path):
                excluded = excludes
        return excluded


NO_PATTERNS = ExcludePatterns(())


def _compile(text: str) -> re.Pattern[str]:
    body = text.removeprefix("!")
    names = [name for name in body.removeprefix("./").split("/") if name]
    if not names or len(text) > _MAX_PATTERN_CHARS or "\\" in body or "." in names or ".." in names:
        raise StepFailed(
            f"The input exclude has {text[:80]!r}, which is not a path pattern. "
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
    """Return the regular expression of one name; `[` without `]` is literal."""
    expression, at = "", 0
    while at < len(name):
        letter = name[at]
        end = name.find("]", at + 3 if name[at + 1 : at + 2] == "!" else at + 2) if letter == "[" else -1
        if end > 0:
            inside = re.sub(r"([\\\[\]^&~|])", r"\\\1", name[at + 1 : end].removeprefix("!"))
            expression += f"(?!/)[{'^' if name[at + 1] == '!' else ''}{inside}]"
            at = end
        else:
            expression += {"*": "[^/]*", "?": "[^/]"}.get(letter, re.escape(letter))
        at += 1
    try:
        re.compile(expression)
    except re.error:  # a reversed range matches nothing
        return "(?!)"
    return expression
