"""The installation in a dependency image's Dockerfile, executed with uv and pip against a package index."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from plan.packages.dependencies import DependencyDeclaration
from plan.packages.pip_log import dependency_failure
from tests.registry import recipe as recipes

from .index import serve_index, wheel


@dataclass(frozen=True)
class RecipeDirectory:
    """A Python environment in place of the base image, whose pip is configured with an index."""

    path: Path

    @property
    def python(self) -> Path:
        return self.path / "python"

    def install(self, *lines: str, uv: bool = True) -> subprocess.CompletedProcess[str]:
        """Execute the installation of these lines."""
        declaration = DependencyDeclaration("requirements.txt", lines)
        return recipes.execute(declaration, self.path, self.python, uv=uv)

    def package(self, name: str) -> tuple[str, bool]:
        """Return which program installed the package, and whether it is compiled."""
        site = recipes.packages(self.python)
        (installer,) = site.glob(f"{name}-*.dist-info/INSTALLER")
        return installer.read_text().strip(), any(site.glob(f"__pycache__/{name}.*.pyc"))


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecipeDirectory]:
    path = tmp_path_factory.mktemp("recipe")
    subprocess.run([sys.executable, "-m", "venv", path / "python"], check=True)
    files = {
        f"{name}-{version}-py3-none-any.whl": wheel(name, version, requires)
        for name, version, requires in [
            ("tide_table", "1.0", ()),
            ("tide_table", "2.0rc1", ()),
            ("pilot", "1.0", ("tide_table==2.0rc1",)),
            ("moon", "1.0", ()),
            ("buoy", "1.0", ("moon>=2",)),
        ]
    }
    with serve_index(files) as index:
        (path / "python" / "pip.conf").write_text(f"[global]\nindex-url = {recipes.address(index)}\n")
        yield RecipeDirectory(path)


def test_uv_installs_and_compiles_from_the_index_of_pips_settings(recipe: RecipeDirectory) -> None:
    done = recipe.install("moon==1.0")
    assert done.returncode == 0, done.stderr
    assert recipe.package("moon") == ("uv", True)


def test_a_dependency_may_name_a_version_before_a_release(recipe: RecipeDirectory) -> None:
    done = recipe.install("pilot")
    assert done.returncode == 0, done.stderr
    assert recipe.package("tide_table") == ("uv", True)


@pytest.mark.parametrize(("lines", "uv"), [(("--pre", "tide_table"), True), (("tide_table",), False)])
def test_pip_installs_what_uv_cannot(recipe: RecipeDirectory, lines: tuple[str, ...], uv: bool) -> None:
    for left in recipes.packages(recipe.python).glob("tide_table*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    done = recipe.install(*lines, uv=uv)
    assert done.returncode == 0, done.stderr
    assert recipe.package("tide_table") == ("pip", True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("moon==9", "no version of moon==9 can be installed"),
        ("unknown-package", "no version of unknown-package can be installed"),
        ("buoy", "only moon==1.0 is available"),
        ("moon=!1", "is not a valid requirement"),
    ],
)
def test_failures_of_uv_are_read(recipe: RecipeDirectory, line: str, message: str) -> None:
    done = recipe.install(line)
    assert done.returncode != 0
    failure = dependency_failure(done.stdout + done.stderr)
    assert failure.reason == "DependencyResolution" and message in failure.message, done.stderr
