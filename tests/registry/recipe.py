"""The installation in a dependency image's Dockerfile, executed on this machine in a Python environment."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from uv import find_uv_bin

from plan.packages.dependencies import DependencyDeclaration
from plan.packages.dockerfile import UV, dockerfile
from tests.registry.index import PASSWORD, USERNAME, PackageIndex


def address(index: PackageIndex) -> str:
    """Return the URL of the index with its credential."""
    return index.url.replace("://", f"://{quote(USERNAME, safe='')}:{quote(PASSWORD, safe='')}@")


def execute(
    declaration: DependencyDeclaration,
    directory: Path,
    python: Path,
    tree: Mapping[str, bytes] = {},
    uv: bool = True,
    **environ: str,
) -> subprocess.CompletedProcess[str]:
    """Execute the installation in the environment `python`, with the repository's files in `tree`."""
    command = dockerfile("base", declaration).rpartition("\nRUN ")[2].partition("\nWORKDIR")[0]
    workspace = directory / "workspace"
    for root, files in ((workspace / "declared", declaration.files()), (workspace / "tree", tree)):
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        for name, data in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
    program = workspace / Path(UV).name
    program.unlink(missing_ok=True)
    if uv:
        program.symlink_to(find_uv_bin())
    for path, here in (("/workspace", workspace), ("HOME=/root", f"HOME={directory}")):
        command = command.replace(path, str(here))
    path_variable = f"{python / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["/bin/sh", "-c", command],
        env={"PATH": path_variable, **environ},
        capture_output=True,
        text=True,
        timeout=300,
    )


def packages(python: Path) -> Path:
    """Return the directory of the environment's packages."""
    (site,) = python.glob("lib/python*/site-packages")
    return site
