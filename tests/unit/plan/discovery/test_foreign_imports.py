"""Packages that a source imports and does not have."""

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from plan.discovery.foreign_imports import foreign_imports


def foreign(code: str, path: str = "agent.py", files: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    tree = {name: text.encode() for name, text in {**files, path: code}.items()}
    return foreign_imports(tree, path, "3.99")


@pytest.mark.parametrize(
    ("code", "packages"),
    [
        ("import rich.console as c, httpx, json.tool, crewyard_runtime.x", ["httpx", "rich"]),
        ("from rich.console import Console, Group", ["rich"]),
        (
            "import google, google.adk.agents\nfrom google import genai",
            ["google", "google.adk", "google.genai"],
        ),
        ("import google.adk.agents\nfrom google.cloud.storage import Client", ["google.adk", "google.cloud"]),
        ("import agent\nfrom . import rich\nfrom .. import httpx\nfrom .more import y", []),
        ("if x:\n    import rich\ntry:\n    import httpx\nfinally: ...\ndef f():\n    import a", []),
        ("def broken(:", []),
        ("x = <syntax of a later Python>", []),
    ],
)
def test_packages_that_every_import_needs_are_found(code: str, packages: list[str]) -> None:
    assert foreign(code) == packages


@pytest.mark.parametrize(
    ("code", "path", "file"),
    [
        ("import tides", "agent.py", "tides.py"),
        ("import tides", "agent.py", "src/tides.py"),
        ("import tides", "a/b/agent.py", "a/b/tides.py"),
        ("import tides", "a/b/agent.py", "tides.py"),
        ("import tides", "agent.py", "tides/__init__.py"),
        ("import tides.low.sand", "agent.py", "src/tides/low/sand.py"),
        ("import tides.low.sand", "agent.py", "tides/low.py"),
        ("from tides.low import sand", "agent.py", "tides/low/sand.py"),
        ("from tides import low", "agent.py", "tides/low/__init__.py"),
        ("from . import tides", "agent.py", "tides.py"),
        ("from .tides import low", "a/b/agent.py", "a/b/tides/low.py"),
        ("from .. import tides", "a/b/agent.py", "a/tides.py"),
        ("from ...tides import low", "a/b/agent.py", "tides.py"),
        ("import json", "a/b/agent.py", "a/b/__init__.py"),
    ],
)
def test_modules_of_the_source_are_followed(code: str, path: str, file: str) -> None:
    assert foreign(code, path, {file: "import rich"}) == ["rich"]


@pytest.mark.parametrize(
    ("path", "file", "packages"),
    [
        ("agent.py", "tides/low.py", []),
        ("agent.py", "src/tides/low.py", []),
        ("a/agent.py", "a/tides/low.py", []),
        ("agent.py", "a/tides/low.py", ["tides"]),
        ("agent.py", "tides2/low.py", ["tides"]),
    ],
)
def test_directory_of_the_source_is_no_package_from_elsewhere(
    path: str, file: str, packages: list[str]
) -> None:
    assert foreign("import tides", path, {file: "import rich"}) == packages


def test_packages_above_the_module_are_imported_as_far_as_they_reach() -> None:
    files = {"a/__init__.py": "import a1", "a/c/__init__.py": "import a2", "a/c/d/__init__.py": "import a3"}
    assert foreign("", "a/c/d/agent.py", files) == ["a1", "a2", "a3"]
    assert foreign("import a4", "a/c/__init__.py", files) == ["a1", "a4"]
    del files["a/c/__init__.py"]
    assert foreign("", "a/c/d/agent.py", files) == ["a3"]


@pytest.mark.parametrize(("number", "packages"), [(49, ["rich"]), (50, [])])
def test_at_most_fifty_modules_are_read(number: int, packages: list[str]) -> None:
    files = {f"m{each}.py": f"import m{each + 1}" for each in range(1, number)}
    assert foreign("import m1", "m0.py", {**files, f"m{number}.py": "import rich"}) == packages


def test_module_that_cannot_be_read_does_not_end_the_search() -> None:
    files = {"tides.py": "def broken(:", "low.py": "import rich, agent"}
    assert foreign("import tides, low", files=files) == foreign("import low, tides", files=files) == ["rich"]
