"""The runner as it goes into every crew's image. Called by build.assemble."""

from collections.abc import Iterator
from pathlib import Path

from build.image.layers import LayerFile

# Next to this package, in the repository and in the service's image alike.
RUNNER = Path(__file__).resolve().parents[2] / "runner"

_PLACE = "opt/crewyard/runner"


def runner_files(directory: Path = RUNNER) -> Iterator[LayerFile]:
    """Every module below `directory` but tests, sorted by where it goes. Raises OSError.

    With them the compiled modules that never look at their source again (the service's image has such): a run
    then starts without compiling the runner.
    """
    found = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*.py")}
    for path in directory.rglob("*.pyc"):
        if _is_final(path):
            found[path.relative_to(directory).as_posix()] = path
    for name in sorted(found, key=lambda name: f"{_PLACE}/{name}"):
        parts = name.split("/")
        if "tests" in parts or parts[-1].startswith(("test_", "conftest")):
            continue
        yield LayerFile(f"{_PLACE}/{name}", found[name].read_bytes())


def _is_final(path: Path) -> bool:
    """Whether a compiled module is of the kind `unchecked-hash` (PEP 552), which no time stamp can spoil."""
    with path.open("rb") as file:
        return file.read(8)[4:] == b"\x01\x00\x00\x00"
