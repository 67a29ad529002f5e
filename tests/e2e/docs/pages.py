"""The commands of a documentation page, as a script that runs as a reader would. Pure.

Placeholder names of pages become those of one test: the project `research`
and the address of its repository. Called by `test_documented_commands`.
"""

import re
import shlex
from dataclasses import dataclass

from tests.testbed.documentation import Block

REPOSITORY = "https://git.example.com/team/research-crew.git"
_PROJECT = re.compile(r"\bresearch\b")


@dataclass(frozen=True)
class PageNames:
    """What a page's names stand for in one test."""

    project: str
    repository: str

    def into(self, text: str) -> str:
        # A name of the page's own that the repository's address holds is not a second time replaced.
        parts = text.split(REPOSITORY)
        return self.repository.join(_PROJECT.sub(self.project, part) for part in parts)


def script(blocks: list[Block], names: PageNames) -> str:
    """Bash that stops at the first command that fails; each block says its line before it."""
    lines = ["set -euo pipefail"]
    for block in blocks:
        text = names.into(block.text)
        if "save" in block.marks:
            lines.append(
                f"cat > {shlex.quote(names.into(block.marks['save']))} <<'OF_THE_PAGE'\n{text}OF_THE_PAGE"
            )
        if "run" in block.marks:
            lines.append(f"echo '=== the block at line {block.line}' >&2")
            lines.append(
                text if block.language != "python" else f"python - <<'OF_THE_PAGE'\n{text}OF_THE_PAGE"
            )
    return "\n".join(lines) + "\n"
