"""What uv asks a package index for, with the very commands of a dependency image."""

import subprocess
import sys
from pathlib import Path

import pytest
from uv import find_uv_bin

from plan.config.configuration import Configuration
from plan.packages.dependencies import read_dependencies
from tests.testbed.public_index import with_public_index

from .index import PackageIndex, serve_index, wheel
from .recipe import address, execute, packages

# Builds wheels with the standard library only, so that no index is asked for a build tool.
BACKEND = """\
import pathlib, tomllib, zipfile

def build_wheel(target, settings=None, metadata=None):
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
    name, info = f"{project['name']}-1-py3-none-any.whl", f"{project['name']}-1.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", "Version: 1"]
    lines += [f"Requires-Dist: {line}" for line in project.get("dependencies", ())]
    with zipfile.ZipFile(pathlib.Path(target, name), "w") as archive:
        archive.writestr(f"{project['name']}.py", "ORIGIN = 'repository'\\n")
        archive.writestr(f"{info}/METADATA", "\\n".join(lines) + "\\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{info}/RECORD", "")
    return name
"""
SYSTEM = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
WORKSPACE = "[tool.uv.workspace]\nmembers = ['libs/*']\n"
LOCK = with_public_index("""\
version = 1
requires-python = ">=3.11"
[[package]]
name = "crew"
version = "1"
source = { virtual = "." }
dependencies = [{ name = "shared" }, { name = "tides" }]
[[package]]
name = "shared"
version = "1"
source = { editable = "libs/shared" }
dependencies = [{ name = "deeper" }]
[[package]]
name = "deeper"
version = "1"
source = { editable = "libs/deeper" }
[[package]]
name = "tides"
version = "2"
source = { registry = "https://public-index.example/simple" }
""")


def project(name: str, dependencies: str, sources: str = "") -> str:
    table = f"[project]\nname = '{name}'\nversion = '1'\ndependencies = [{dependencies}]\n"
    return table + SYSTEM + (f"[tool.uv.sources]\n{sources}\n" if sources else "")


LIBRARIES = {
    "libs/shared/pyproject.toml": project("shared", "'deeper'", "deeper = {workspace = true}"),
    "libs/shared/backend.py": BACKEND,
    "libs/deeper/pyproject.toml": project("deeper", ""),
    "libs/deeper/backend.py": BACKEND,
}
CREWS = {
    "sources": {
        "pyproject.toml": WORKSPACE + project("crew", "'shared', 'tides'", "shared = {workspace = true}")
    },
    "requirements": {"pyproject.toml": WORKSPACE, "requirements.txt": "./libs/shared\ntides\n"},
    "name": {"pyproject.toml": WORKSPACE, "requirements.txt": "shared\ntides\n"},
    "lock": {
        "pyproject.toml": WORKSPACE + project("crew", "'shared', 'tides'", "shared = {workspace = true}"),
        "uv.lock": LOCK,
    },
}


@pytest.mark.parametrize("crew", CREWS.values(), ids=CREWS)
def test_an_index_is_never_asked_for_a_redirected_name(crew: dict[str, str], tmp_path: Path) -> None:
    files = {**LIBRARIES, **crew}
    served = {
        # A package of the index asks for a name that the repository redirects.
        "tides-2-py3-none-any.whl": wheel("tides", "2", ("shared",)),
        "shared-99-py3-none-any.whl": wheel("shared", "99"),
        "deeper-99-py3-none-any.whl": wheel("deeper", "99"),
    }
    with serve_index(served) as index:
        installed = install(files, index, tmp_path)
    assert index.asked >= {"tides"}
    assert not index.asked & {"shared", "deeper"}
    assert (installed / "shared.py").read_text() == (installed / "deeper.py").read_text()
    assert (installed / "shared.py").read_text() == "ORIGIN = 'repository'\n"


def install(files: dict[str, str], index: PackageIndex, directory: Path) -> Path:
    """Run the installation of the dependency image of `files`; return the directory of the packages."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    data = {path: text.encode() for path, text in files.items()}
    declaration = read_dependencies(data, Configuration("test"), python=version)
    python = directory / "python"
    subprocess.run([find_uv_bin(), "venv", "--quiet", "--python", sys.executable, python], check=True)
    done = execute(declaration, directory, python, data, PIP_INDEX_URL=address(index))
    assert done.returncode == 0, done.stdout + done.stderr
    return packages(python)
