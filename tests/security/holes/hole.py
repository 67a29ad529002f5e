"""A guard that is removed in a copy of the product, and the tests that must then fail.

Called by the tests of the holes. A test that stays green without its guard shows nothing.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from tests.campaign.bugs.bug import PACKAGES, Edit

ROOT = Path(__file__).parents[3]
BESIDE = ("client", "crds", "dev", "tests", "manifests")
"""What tests read besides the product."""
FAILED = 1
"""pytest's exit code where tests failed; any other one says that they did not run."""
SECONDS = 300


@dataclass(frozen=True)
class Hole:
    """`attack` is its row in docs/security.md; each of `tests` must fail once the edits are made."""

    attack: str
    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


def hole(attack: str, name: str, file: str, before: str, after: str, *tests: str) -> Hole:
    """One with a single edit."""
    return Hole(attack, name, (Edit(file, before, after),), tests)


def copied(directory: Path) -> Path:
    """A copy of the product with its tests."""
    tree = directory / "tree"
    for package in sorted({*PACKAGES, *BESIDE}):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tree / package, symlinks=True, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


def opened(found: Hole, tree: Path) -> dict[Path, str]:
    """The files that it changes, as they are with it. Raises AssertionError where it does not fit."""
    texts: dict[Path, str] = {}
    for edit in found.edits:
        path = tree / edit.file
        text = texts.get(path) or path.read_text()
        times = text.count(edit.before)
        assert times == 1, (
            f"the hole {found.name!r} does not fit any more: {edit.file} has this {times} times, not once; "
            f"rewrite its edit in tests/security/holes:\n{edit.before}"
        )
        texts[path] = text.replace(edit.before, edit.after)
    return texts


@contextmanager
def without_guard(found: Hole, tree: Path) -> Iterator[None]:
    """The copy has the hole meanwhile."""
    before = {path: path.read_text() for path in opened(found, tree)}
    _written(opened(found, tree))
    try:
        yield
    finally:
        _written(before)


def _written(texts: dict[Path, str]) -> None:
    """Write the files and remove their bytecode, which is of the same second and perhaps of the same size."""
    for path, text in texts.items():
        path.write_text(text)
        Path(cache_from_source(str(path))).unlink(missing_ok=True)


def run(tree: Path, test: str) -> tuple[int, str]:
    """The exit code and the end of the output of a test of the copy."""
    words = ["-m", "pytest", "-q", "-x", "-m", "", "-p", "no:cacheprovider", "-o", f"timeout={SECONDS}", test]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tree,
        env=environment,
        capture_output=True,
        timeout=SECONDS + 60,
        check=False,
    )
    return done.returncode, done.stdout.decode(errors="replace")[-3000:]
