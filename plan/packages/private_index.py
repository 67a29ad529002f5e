"""Which lines pip may read beside the credential of a private index. Called by plan.packages.dependencies.

pip executes what it finds at an address other than a wheel's, follows `-r` to any
file of its container and puts variables of its environment into addresses. So
only forms that are known to do nothing of this are let through.
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
_SHOWN = 200


def check_lines(lines: Iterable[str]) -> None:
    """Raises PlanError(DependencyResolution) for the first line that is not let through."""
    for line in lines:
        shown = repr(line[:_SHOWN])
        if len(line.splitlines()) != 1 or line.endswith("\\") or not re.match(r"[A-Za-z0-9-]", line):
            raise _refused(f"{shown} is no requirement", "Name packages by name and version, one a line.")
        if "${" in line:
            raise _refused(
                f"{shown} has a variable; with a private index none is put in",
                "Write out what it stands for; name and password belong into the Secret.",
            )
        if line.startswith("-"):
            if not _OPTION.fullmatch(line):
                raise _refused(
                    f"{shown} is an option that is not taken with a private index",
                    "Remove it; known options are taken one a line, as --extra-index-url ADDRESS or --pre.",
                )
            continue
        found = _ADDRESS.match(line)
        if found and not re.fullmatch(r"https?://.*\.whl", found["address"]):
            raise _refused(
                f"{shown} is an address; with a private index packages are installed from wheels only",
                "Put a wheel of it into the private index, and name it by name and version.",
            )


def _refused(problem: str, hint: str) -> PlanError:
    return PlanError(DEPENDENCY_RESOLUTION, problem, hint)
