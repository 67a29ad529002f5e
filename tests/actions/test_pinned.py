"""Workflows and examples name the actions of others by commit: a tag can be moved to other code."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(
    [
        *(ROOT / ".github").rglob("*.yml"),
        *(ROOT / "examples").rglob("*.yml"),
        *(ROOT / "actions").rglob("*.yml"),
        *(ROOT / "actions").rglob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "README.md",
    ]
)
USES = re.compile(r"^\s*(?:- )?uses: *(\S+)", re.MULTILINE)
PINNED = re.compile(r"[\w.-]+(?:/[\w.-]+)+@[0-9a-f]{40}")
OWN = re.compile(r"OWNER/crewyard/actions/(?:deploy|run)@vX\.Y\.Z")
"""As a user writes it, with a release; `release.yml` makes no other tags."""


def is_allowed(action: str) -> bool:
    return action.startswith("./") or bool(PINNED.fullmatch(action) or OWN.fullmatch(action))


def named() -> list[tuple[str, str]]:
    return [
        (path.relative_to(ROOT).as_posix(), action)
        for path in FILES
        for action in USES.findall(path.read_text())
    ]


def test_every_action_is_named_by_commit():
    found = named()
    assert {"actions/deploy/README.md", "examples/workflows/deploy.yml", ".github/workflows/ci.yml"} <= {
        name for name, _ in found
    }
    assert [(name, action) for name, action in found if not is_allowed(action)] == []


@pytest.mark.parametrize("action", ["actions/checkout@v5", "actions/checkout", "actions/checkout@08c6903"])
def test_tags_and_short_commits_are_found(action):
    assert not is_allowed(action)
