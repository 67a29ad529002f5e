"""Step `source` of the dependencies pod: write the files that its installation needs.

Called by build.__main__.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from uv import find_uv_bin

from build.errors import InfrastructureError
from build.image import changed_files
from build.logs import BuildLog
from build.planned_source import PlannedSource, fetch_and_plan
from build.settings import BuildSettings
from egress import ca_bundle
from plan.keys import base_keys
from plan.packages.dependencies import DependencyDeclaration
from plan.packages.dockerfile import DECLARED, UV, dockerfile, install_script
from plan.packages.own_project import lacks_build_file

WORKSPACE = Path("/workspace")

# A project with only a setup.cfg uses setuptools, but pip needs a pyproject.toml that says so.
_SETUPTOOLS = b'[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'


def write_workspace(settings: BuildSettings, log: BuildLog, workspace: Path = WORKSPACE) -> None:
    """Fetch the source again and write the requirements to `declared`, and how to install them.

    Write `install.sh` where a container of the base image installs them; else a `Dockerfile`, and the files
    that one of the crew can copy to `context`. Where needed, also write the source to `tree` and packages to
    `wheels`. An image without dependencies needs no source. Raises PlanError, or InfrastructureError where
    the plan differs from that of `assemble`.
    """
    ca_bundle_path = _write_ca_bundle(workspace, os.environ)
    bases = base_keys(settings.base_images)
    if settings.dependencies_key in bases:
        base_image = settings.base_images[bases[settings.dependencies_key]]
        (workspace / "context").mkdir(mode=0o755, parents=True, exist_ok=True)
        _write(workspace / "Dockerfile", dockerfile(base_image, DependencyDeclaration("")).encode())
        log.line(f"the image without dependencies, on {base_image}")
        return
    source = fetch_and_plan(settings, log)
    if settings.dependencies_key not in (None, source.key):
        raise InfrastructureError(
            f"the source needs dependencies {source.key}, not {settings.dependencies_key}"
        )
    declaration = source.planned.declaration
    for name, data in declaration.files().items():
        _write(workspace / Path(DECLARED).name / name, data)
    # The dependencies key excludes this path: other CA certificates do not change the image.
    if settings.base_digest:
        instructions = install_script(declaration, ca_bundle_path)
        _write(workspace / "install.sh", instructions.encode())
        _write(workspace / "changed_files.py", Path(changed_files.__file__).read_bytes())
    else:
        instructions = dockerfile(source.base_image, declaration, ca_bundle_path, source.planned.plan.python)
        _write(workspace / "Dockerfile", instructions.encode())
        _write_context(source, workspace / "context")
    if UV in instructions:
        _write(workspace / Path(UV).name, Path(find_uv_bin()).read_bytes(), 0o755)
    if declaration.projects:
        _write_tree(source, workspace / "tree")
    if declaration.private_index:
        # uv needs the directory, even where nothing is downloaded.
        (workspace / "wheels").mkdir(mode=0o755, parents=True, exist_ok=True)
    downloaded = (declaration.lines, declaration.direct, declaration.added, declaration.build_requires)
    if declaration.private_index and any(downloaded):
        from build.wheels.download import download_wheels  # most projects have no private index

        download_wheels(declaration, source.planned.plan.python, settings.index, workspace / "wheels", log)
    origin = declaration.origin or "none declared"
    count = len(declaration.lines) + len(declaration.added)
    log.line(f"dependencies ({origin}): {count} lines, on {source.base_image}")


def _write_context(source: PlannedSource, context: Path) -> None:
    context.mkdir(mode=0o755, parents=True, exist_ok=True)
    base = source.planned.declaration.base
    for path in base.copied if base else ():
        _write(context / path, source.tree[path], 0o755 if source.tree.entry(path).executable else 0o644)


def _write_ca_bundle(workspace: Path, environ: Mapping[str, str]) -> str:
    """Write this process's CA bundle for Kaniko and return its path; empty where there are no own CAs."""
    if not environ.get(ca_bundle.CA_VARIABLE, "").strip():
        return ""
    path = workspace / "ca.crt"
    _write(path, Path(environ["SSL_CERT_FILE"]).read_bytes())
    return str(path)


def _write_tree(source: PlannedSource, target: Path) -> None:
    """Write the source, and other projects of its repository, in the layout of the repository."""
    for directory, tree in [*source.outside.items(), (source.path, source.tree)]:
        for path in tree:
            mode = 0o755 if tree.entry(path).executable else 0o644
            _write(target / directory / path, tree[path], mode)
    for directory in source.planned.declaration.projects:
        project = target / directory
        if project.is_dir() and lacks_build_file([path.name for path in project.iterdir()]):
            _write(project / "pyproject.toml", _SETUPTOOLS)


def _write(path: Path, data: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    # A new file, or one of an earlier try; never follows a link.
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    with os.fdopen(number, "wb") as file:
        file.write(data)
    path.chmod(mode)
