"""The runner's files in the image of every crew. Called by build.assemble."""

from collections.abc import Iterator
from pathlib import Path

from build.image.layers import LayerFile

# Next to this package, both in the repository and in the service image.
RUNNER = Path(__file__).resolve().parents[2] / "runner"

_TARGET = "opt/crewyard/runner"


def runner_files(directory: Path = RUNNER) -> Iterator[LayerFile]:
    """Yield every module below `directory` except tests, sorted by target path. Raises OSError.

    Includes unchecked compiled modules, which the service image has: a run then starts without compiling the
    runner.
    """
    modules = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*.py")}
    for path in directory.rglob("*.pyc"):
        if _is_unchecked(path):
            modules[path.relative_to(directory).as_posix()] = path
    for name in sorted(modules, key=lambda name: f"{_TARGET}/{name}"):
        parts = name.split("/")
        if "tests" in parts or parts[-1].startswith(("test_", "conftest")):
            continue
        yield LayerFile(f"{_TARGET}/{name}", modules[name].read_bytes())


def _is_unchecked(path: Path) -> bool:
    """Return whether a compiled module is `unchecked-hash` (PEP 552), independent of time stamps."""
    with path.open("rb") as file:
        return file.read(8)[4:] == b"\x01\x00\x00\x00"
