"""Instructions of a Dockerfile: one logical line each, and the parts of one. Called by plan.base.read."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

_FLAG = re.compile(r"--([a-z-]+)(?:=(\S*))?\s*")


@dataclass(frozen=True)
class Instruction:
    """One instruction; `flags` are its options without `--`, `image` is one that it takes from a registry.

    `image` is what FROM or --from= names; `arguments` are what follows.
    """

    word: str
    arguments: str
    line: int
    flags: tuple[tuple[str, str], ...] = ()
    image: str = ""

    @property
    def text(self) -> str:
        """The instruction as a line of a Dockerfile."""
        flags = [f"--{name}={value}" for name, value in self.flags]
        source = []
        if self.image:
            source = [self.image if self.word == "FROM" else f"--from={self.image}"]
        return " ".join(filter(None, [self.word, *source, *flags, self.arguments]))

    def with_image(self, image: str) -> "Instruction":
        """Return it with another image."""
        return replace(self, image=image)

    def values(self) -> list[str]:
        """Return the arguments as a list, in either of the two forms."""
        if self.arguments.startswith("["):
            with suppress(ValueError, RecursionError):
                values: list[object] = json.loads(self.arguments)
                if values and all(isinstance(value, str) for value in values):
                    return list(map(str, values))
        return self.arguments.split()


def instructions(text: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile; comments and empty lines are left out."""
    pending, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not pending:
            first = number
        kept = line.rstrip()
        if kept.endswith("\\"):
            pending += kept[:-1]
            continue
        yield _parsed(pending + line, first)
        pending = ""
    # The line after it is not the crew's.
    if pending := pending.rstrip("\\ \t"):
        yield _parsed(pending, first)


def _parsed(text: str, line: int) -> Instruction:
    word, *more = text.strip().split(None, 1)
    rest, flags = more[0] if more else "", []
    while match := _FLAG.match(rest):
        flags.append((match[1], match[2] or ""))
        rest = rest[match.end() :]
    return Instruction(word.upper(), rest, line, tuple(flags))
