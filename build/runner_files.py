"""The runner as it goes into every crew's image. Called by build.assemble."""

from collections.abc import Iterator
from pathlib import Path

from build.layers import LayerFile

# Next to this package, in the repository and in the service's image alike.
RUNNER = Path(__file__).resolve().parent.parent / "runner"

_PLACE = "opt/crewyard/runner"


def runner_files(directory: Path = RUNNER) -> Iterator[LayerFile]:
    """Every module below `directory` but tests, sorted by where it goes. Raises OSError."""
    found = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*.py")}
    for name in sorted(found, key=lambda name: f"{_PLACE}/{name}"):
        parts = name.split("/")
        if "tests" in parts or parts[-1].startswith(("test_", "conftest")):
            continue
        yield LayerFile(f"{_PLACE}/{name}", found[name].read_bytes())
