"""Which installer a requirement needs, uv or pip. Called by plan.packages.dockerfile."""

import re
from collections.abc import Iterable

# What uv reads as pip does: one option on a line. It ignores --pre, and refuses most others.
_UV_OPTION = re.compile(
    r"--no-index"
    r"|(?:-i|-f|--(?:index-url|extra-index-url|find-links))(?:\s+|=)[\"']?https?://\S+"
    r"|--(?:no-binary|only-binary)(?:\s+|=)[^\s,]+"
)
_PACKAGE_OPTION = re.compile(r"\s--(?!hash\b)")
_SEVERAL_INDEXES = re.compile(r"--(?:extra-)?index-url\b|-i\b")


def needs_pip(lines: Iterable[str]) -> bool:
    """Return whether a line has an option that uv does not read as pip does, such as --pre."""
    return any(
        not _UV_OPTION.fullmatch(line) if line.startswith("-") else _PACKAGE_OPTION.search(line)
        for line in lines
    )


def index_strategy(lines: Iterable[str]) -> str:
    """Return the option, after a space, with which uv reads several indexes as pip does; else nothing."""
    # By default uv takes all versions of a name from the first index that has the name.
    several = any(_SEVERAL_INDEXES.match(line) for line in lines)
    return " --index-strategy unsafe-best-match" if several else ""
