"""A mistake, put into a copy of the product: exact pieces of code and what stands in their place.

Called by the tests of seeded bugs. Where the code has changed so that a piece is no
longer there, or is there twice, planting fails: rewrite the bug.
"""

import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from tests.campaign.checks.checker import Violation

PACKAGES = (
    "api", "build", "controller", "crds", "egress", "http_server", "internal_tls", "kube", "plan", "runner",
)  # fmt: skip
"""What the processes of the product are made of."""


@dataclass(frozen=True)
class Edit:
    """`before` is in that file exactly once; `after` takes its place."""

    file: str
    before: str
    after: str


Scene = Callable[[Path, Path], Awaitable[list[Violation]]]
"""Given a directory and a tree; what the checker has to say about a product of that tree."""


@dataclass(frozen=True)
class Bug:
    """A mistake, the scene that is to catch it, and the kinds of violations that it shows there."""

    name: str
    edits: tuple[Edit, ...]
    scene: Scene
    shows: frozenset[str]


def copied(root: Path, directory: Path) -> Path:
    """A copy of the product."""
    tree = directory / "tree"
    for package in PACKAGES:
        shutil.copytree(root / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tree


def changed(root: Path, bug: Bug) -> dict[str, str]:
    """The files that it changes, as they are with it. Raises AssertionError where it does not fit."""
    texts: dict[str, str] = {}
    for edit in bug.edits:
        text = texts.get(edit.file) or (root / edit.file).read_text()
        times = text.count(edit.before)
        assert times == 1, (
            f"the seeded bug {bug.name!r} does not fit any more: {edit.file} has this {times} times, not "
            f"once; rewrite its edit in tests/campaign/bugs/catalogue.py:\n{edit.before}"
        )
        texts[edit.file] = text.replace(edit.before, edit.after)
    return texts


def plant(tree: Path, bug: Bug) -> None:
    """Apply the edits to a copy. Raises AssertionError if the code does not match."""
    for file, text in changed(tree, bug).items():
        (tree / file).write_text(text)
