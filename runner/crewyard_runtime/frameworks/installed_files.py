"""Files of installed packages. Called by `hint` and `questions.question`."""

from __future__ import annotations


def is_installed(file: str) -> bool:
    """Return whether the file is of an installed package; Debian's own Python has them in dist-packages."""
    return "/site-packages/" in file or "/dist-packages/" in file
