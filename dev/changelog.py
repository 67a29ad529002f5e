"""Release notes from CHANGELOG.md: `python3 -m dev.changelog X.Y.Z` prints the section of a version.

Called by the release workflow; standard library only.
"""

import re
import sys

from dev.settings import REPOSITORY


def section(text: str, version: str) -> str:
    """Return the section of `version` without its heading. Pure. Raises ValueError if absent or empty."""
    match = re.search(rf"(?ms)^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", text)
    if not match:
        raise ValueError(f"CHANGELOG.md has no section [{version}]: rename [Unreleased] before you tag")
    notes = match[1].strip()
    if not notes:
        raise ValueError(f"the section [{version}] of CHANGELOG.md is empty")
    return notes


def main(arguments: list[str]) -> int:
    """Print the section of `arguments[0]`. Return the exit code."""
    (version,) = arguments
    try:
        print(section((REPOSITORY / "CHANGELOG.md").read_text(), version))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
