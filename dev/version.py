"""The one version of the project: `python3 -m dev.version` prints it, `python3 -m dev.version X.Y.Z` sets it.

pyproject.toml holds it; every other place repeats it for a reader that cannot read pyproject.toml.
Called by `make version` and by the release workflow; standard library only.
"""

import re
import sys
import tomllib
from pathlib import Path

from dev.settings import REPOSITORY

SOURCE = "pyproject.toml"
COPIES = (
    (SOURCE, r'(?m)^version = "(.+)"$'),
    ("client/pyproject.toml", r'(?m)^version = "(.+)"$'),
    ("client/crewyard/__init__.py", r'__version__ = "(.+)"'),
    ("clients/go/crewyard.go", r'const Version = "(.+)"'),
    ("clients/typescript/package.json", r'(?m)^  "version": "(.+)",$'),
    ("clients/typescript/package-lock.json", r'"name": "crewyard",\n\s+"version": "(.+)"'),
    ("manifests/chart/Chart.yaml", r"(?m)^version: (.+)$"),
    ("manifests/chart/Chart.yaml", r"(?m)^appVersion: (.+)$"),
    ("manifests/base/api.yaml", r"image: crewyard/service:(.+)"),
    ("manifests/base/controller.yaml", r"image: crewyard/service:(.+)"),
    ("manifests/base/kustomization.yaml", r"crewyard/service:(.+)"),
    ("docs/installation.md", r"crewyard/service:(\d\S*)"),
    ("docs/installation.md", r"targetRevision: v(\S+)"),
    ("docs/backup.md", r"crewyard/service:(\d\S*)"),
    ("docs/clients.md", r"crewyard-(\d\S*)\.tgz"),
)
"""Files that state the version, and the pattern whose first group is the version."""
FORM = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?")


def current(repository: Path = REPOSITORY) -> str:
    """Return the version in pyproject.toml."""
    version: str = tomllib.loads((repository / SOURCE).read_text())["project"]["version"]
    return version


def stated(repository: Path = REPOSITORY) -> list[tuple[str, str]]:
    """Return every stated version as (file, version). Raises ValueError for a file that states none."""
    versions = []
    for file, pattern in COPIES:
        matches = re.findall(pattern, (repository / file).read_text())
        if not matches:
            raise ValueError(f"{file} states no version: nothing matches {pattern}")
        versions += [(file, version) for version in matches]
    return versions


def replaced(text: str, pattern: str, version: str) -> str:
    """Return `text` with the first group of each match of `pattern` replaced by `version`. Pure."""
    return re.sub(pattern, lambda match: match[0].replace(match[1], version), text)


def main(arguments: list[str]) -> int:
    """Print the version, or write `arguments[0]` to every file. Return the exit code."""
    if not arguments:
        print(current())
        return 0
    (version,) = arguments
    if not FORM.fullmatch(version):
        print(f"{version!r} is not a version: use MAJOR.MINOR.PATCH, for example 0.2.0", file=sys.stderr)
        return 2
    for file, pattern in COPIES:
        path = REPOSITORY / file
        path.write_text(replaced(path.read_text(), pattern, version))
    print(version)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
