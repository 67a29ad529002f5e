"""Step `source` of the dependencies pod: writes what Kaniko needs, no more. Called by build.__main__."""

import os
from collections.abc import Mapping
from pathlib import Path

from build.errors import Infrastructure
from build.logs import Log
from build.planned_source import Sourced, planned_source
from build.settings import Settings
from build.source.tree import SourceTree
from egress import ca_bundle
from plan.packages.dockerfile import dockerfile
from plan.packages.own_project import lacks_build_file

WORKSPACE = Path("/workspace")

# A project that has only a setup.cfg is setuptools', but pip wants to be told.
_SETUPTOOLS = b'[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'


def write_workspace(settings: Settings, log: Log, workspace: Path = WORKSPACE) -> None:
    """Fetches the source again and writes Dockerfile and declaration to `context`.

    Only where they are needed, the source goes to `tree` and packages to `wheels`. Raises
    PlanError, or Infrastructure where the plan is not the one that `assemble` made.
    """
    sourced = planned_source(settings, log)
    if settings.dependencies_key not in (None, sourced.key):
        raise Infrastructure(f"the source needs dependencies {sourced.key}, not {settings.dependencies_key}")
    declaration = sourced.planned.declaration
    context = workspace / "context"
    for name, data in declaration.files().items():
        _write(context / name, data)
    trusted = _trusted(workspace, os.environ)
    # The key is of the text without it: other authorities make no other image.
    _write(context / "Dockerfile", dockerfile(sourced.base_image, declaration, trusted).encode())
    if declaration.projects:
        _write_tree(sourced, workspace / "tree")
    if declaration.private_index and (declaration.lines or declaration.build_requires):
        from build.wheels.download import download_wheels  # most projects have no private index

        download_wheels(declaration, sourced.planned.plan.python, settings.index, workspace / "wheels", log)
    origin = declaration.origin or "nothing declared"
    log.line(f"dependencies ({origin}): {len(declaration.lines)} lines, on {sourced.base_image}")


def _trusted(workspace: Path, environ: Mapping[str, str]) -> str:
    """The file of what this process trusts, for Kaniko; nothing where there are no own authorities."""
    if not environ.get(ca_bundle.VARIABLE, "").strip():
        return ""
    place = workspace / "ca.crt"
    _write(place, Path(environ["SSL_CERT_FILE"]).read_bytes())
    return str(place)


def _write_tree(sourced: Sourced, place: Path) -> None:
    tree: SourceTree = sourced.tree
    for path in tree:
        _write(place / path, tree[path], 0o755 if tree.entry(path).executable else 0o644)
    for directory in sourced.planned.declaration.projects:
        if lacks_build_file(tree, directory):
            _write(place / directory / "pyproject.toml", _SETUPTOOLS)


def _write(path: Path, data: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    # A new file, or the same one of an earlier try: nothing that is there is followed.
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    with os.fdopen(number, "wb") as file:
        file.write(data)
    path.chmod(mode)
