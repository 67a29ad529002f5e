"""Debian packages and Dockerfile lines of a crew, as instructions of its dependency image.

Called by plan.config, which checks them, and by plan.packages.dockerfile. The builder executes them as root
without any credential, like the setup of a Python package.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]{1,99}")
_INSTRUCTIONS = ("RUN", "ENV", "ARG", "LABEL", "WORKDIR", "SHELL")
_MAX_LINES = 200
_MAX_LINE_LENGTH = 4096

# The builder may not become another user, which apt does for its downloads.
APT_SETTINGS = """\
RUN if [ -d /etc/apt/apt.conf.d ]; then echo 'APT::Sandbox::User "root";' > /etc/apt/apt.conf.d/90crewyard; fi
"""
_APT = """\
RUN export DEBIAN_FRONTEND=noninteractive; \\
    command -v apt-get > /dev/null || {{ echo 'the base image has no apt-get'; exit 1; }}; \\
    apt-get {options}update && apt-get {options}install -y --no-install-recommends {packages} \\
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
"""


def package_problem(names: Sequence[str]) -> str | None:
    """Return what is wrong with a list of Debian packages, or None."""
    wrong = next((name for name in names if not _PACKAGE.fullmatch(name)), None)
    return None if wrong is None else f"has {wrong[:100]!r}, which is not the name of a Debian package"


def instruction_problem(lines: Iterable[str]) -> str | None:
    """Return what is wrong with lines for a Dockerfile, or None."""
    texts = list(lines)
    if len(texts) > _MAX_LINES or any(len(text) > _MAX_LINE_LENGTH for text in texts):
        return f"has more than {_MAX_LINES} lines, or one above {_MAX_LINE_LENGTH} characters"
    for instruction in joined_instructions(texts):
        word, _, rest = instruction.partition(" ")
        if word.upper() not in _INSTRUCTIONS:
            return f"has {word[:20]}; supported are {', '.join(_INSTRUCTIONS)}"
        if rest.lstrip().startswith("--") or "<<" in rest:
            return f"has {instruction[:60]!r}; options and here-documents are not supported"
    return None


def joined_instructions(lines: Iterable[str]) -> Iterator[str]:
    """Yield each instruction as one line, without comments."""
    pending = ""
    for line in (part for text in lines for part in text.splitlines()):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        pending = f"{pending} {text}".strip()
        if pending.endswith("\\"):
            pending = pending[:-1].rstrip()
            continue
        yield pending
        pending = ""
    if pending:
        yield pending


def system_instructions(
    packages: Sequence[str], dockerfile_lines: Sequence[str], ca_bundle: str
) -> Iterator[str]:
    """Yield the instructions that install Debian packages and execute the crew's own lines."""
    if packages or dockerfile_lines:
        yield APT_SETTINGS
    if packages:
        options = f"-o Acquire::https::CAInfo={ca_bundle} " if ca_bundle else ""
        yield _APT.format(options=options, packages=" ".join(packages))
    for instruction in joined_instructions(dockerfile_lines):
        yield f"{instruction}\n"
