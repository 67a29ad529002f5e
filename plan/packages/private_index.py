"""Allowlist of requirement lines for private indexes. Called by plan.packages.dependencies.

pip executes packages from URLs other than wheels, follows `-r` to any file of its container and expands
environment variables in URLs. Next to the credential of an index only lines known to do none of this are
allowed.
"""

import re
from collections.abc import Iterable

from ..errors import DEPENDENCY_RESOLUTION, PlanError

_VALUE = r"(?:\s+|=)[^\s-]\S*"
_OPTION = re.compile(
    r"--(?:pre|prefer-binary|no-index|require-hashes)"
    rf"|(?:-i|-f|--(?:index-url|extra-index-url|find-links|trusted-host|only-binary|no-binary)){_VALUE}"
)
_ADDRESS = re.compile(r"(?:[^@;]*@\s*)?(?P<address>[A-Za-z][A-Za-z0-9+.-]*:[^\s;#?]*)")
_MAX_SHOWN = 200


def check_lines(lines: Iterable[str]) -> None:
    """Raise PlanError(DependencyResolution) for the first line that is not allowed."""
    for line in lines:
        shown = repr(line[:_MAX_SHOWN])
        if len(line.splitlines()) != 1 or line.endswith("\\") or not re.match(r"[A-Za-z0-9-]", line):
            raise _refusal(
                f"{shown} is not a requirement", "List packages by name and version, one per line."
            )
        if "${" in line:
            raise _refusal(
                f"{shown} has a variable; with a private index variables are not expanded",
                "Write out its value; put user name and password into the Secret.",
            )
        if line.startswith("-"):
            if not _OPTION.fullmatch(line):
                raise _refusal(
                    f"{shown} is an option that is not allowed with a private index",
                    "Remove it; write allowed options one per line, such as --extra-index-url URL or --pre.",
                )
            continue
        match = _ADDRESS.match(line)
        if match and not re.fullmatch(r"https?://.*\.whl", match["address"]):
            raise _refusal(
                f"{shown} is a URL; with a private index packages are installed from wheels only",
                "Upload a wheel to the private index and list the package by name and version.",
            )


def _refusal(problem: str, hint: str) -> PlanError:
    return PlanError(DEPENDENCY_RESOLUTION, problem, hint)
