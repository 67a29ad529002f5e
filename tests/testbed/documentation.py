"""Code blocks of the documentation pages and their marks.

A hidden comment before a block says what tests do with it:

    <!-- run -->              executed, in order with the page's others, in one shell
    <!-- save: name -->       written to that file of the page's directory
    <!-- not run: why -->     only shown
    <!-- given: what -->      the page takes a deployed project called research for granted

Called by tests/unit/docs and by tests/e2e/docs/test_documented_commands.py.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
_MARK = re.compile(r"<!-- (run|not run|save|given)(?:: (.+))? -->")
_FENCE = re.compile(r"^( *)```(\S*)\s*$")


@dataclass
class Block:
    """A fenced block: language, text, marks by name, and line."""

    language: str
    line: int
    marks: dict[str, str]
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(text: str) -> list[Block]:
    found: list[Block] = []
    marks: dict[str, str] = {}
    opened: tuple[str, Block] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is not None:
            indent, block = opened
            if fence and not fence[2]:
                opened = None
            else:
                block.lines.append(line.removeprefix(indent))
        elif fence:
            opened = fence[1], Block(fence[2], number, marks)
            found.append(opened[1])
            marks = {}
        elif mark := _MARK.match(line.strip()):
            marks[mark[1]] = mark[2] or ""
        elif line.strip():
            marks = {}
    return found
