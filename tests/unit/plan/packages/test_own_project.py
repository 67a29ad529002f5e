"""Crews that must be installed before import: detection, declaration, key of the dependency image."""

import pytest

from plan.errors import PlanError
from plan.keys import dependencies_key
from plan.make import Planned, make_plan
from plan.packages.dockerfile import dockerfile
from plan.packages.own_project import find_project, is_project

GO = "def go(inputs): ...\n"
CREW = '[deployment]\nentrypoint = "pkg.crew:go"\n'
PROJECT = (
    '[project]\nname = "pkg"\ndependencies = ["langgraph==1.2"]\n[build-system]\nrequires = ["hatchling"]\n'
)


def planned(files: dict[str, str], private_index: bool = False) -> Planned:
    data = {path: text.encode() for path, text in files.items()}
    return make_plan(data, None, ["3.11"], private_index)


def key(files: dict[str, str], tree: str, private_index: bool = False) -> str:
    return dependencies_key(planned(files, private_index).declaration, "3.11", "base", tree)


@pytest.mark.parametrize(
    ("files", "projects"),
    [
        ({"src/pkg/crew.py": GO, "pyproject.toml": PROJECT}, ()),
        ({"pkg/crew.py": GO, "pyproject.toml": PROJECT}, ()),
        ({"lib/pkg/crew.py": GO, "pyproject.toml": PROJECT}, ("",)),
        ({"lib/pkg/crew/__init__.py": GO, "pyproject.toml": "[build-system]\nrequires = []\n"}, ("",)),
        ({"lib/pkg/crew.py": GO, "setup.py": "raise SystemExit"}, ("",)),
        ({"lib/pkg/crew.py": GO, "setup.cfg": "[metadata]\nname = pkg\n"}, ("",)),
        ({"packages/a/src/pkg/crew.py": GO, "packages/a/pyproject.toml": PROJECT}, ("packages/a",)),
    ],
)
def test_project_is_installed_only_where_needed(files: dict[str, str], projects: tuple[str, ...]) -> None:
    found = planned({"crew.toml": CREW, **files})
    assert found.declaration.projects == projects
    text = dockerfile("base", found.declaration)
    assert [f"/workspace/tree/{path}".rstrip("/") in text for path in projects] == [True] * len(projects)
    assert ("/workspace/tree" in text) == bool(projects)


@pytest.mark.parametrize(
    "files",
    [
        {"lib/pkg/crew.py": GO},
        {"lib/pkg/crew.py": GO, "pyproject.toml": "[tool.black]\n"},
        {"lib/pkg/crew.py": GO, "setup.cfg": "[flake8]\n"},
        {"pyproject.toml": PROJECT, "lib/pkg/other.py": GO},
    ],
)
def test_module_outside_of_projects_is_not_found(files: dict[str, str]) -> None:
    with pytest.raises(PlanError) as raised:
        planned({"crew.toml": CREW, **files})
    assert raised.value.reason == "EntrypointNotFound"


def test_module_in_a_package_is_ignored() -> None:
    files = {"pyproject.toml": PROJECT.encode(), "lib/pkg/__init__.py": b"", "lib/pkg/crew.py": b""}
    assert find_project(files, "crew") is None
    assert find_project(files, "pkg.crew") == ("lib/pkg/crew.py", "")


def test_default_entrypoint_is_not_searched_in_projects() -> None:
    with pytest.raises(PlanError) as raised:
        planned({"pyproject.toml": PROJECT, "examples/main.py": "def kickoff(): ...\n"})
    assert raised.value.reason == "EntrypointNotFound"


def test_key_covers_the_tree_only_where_it_is_installed() -> None:
    flat = {"crew.toml": CREW, "pkg/crew.py": GO, "pyproject.toml": PROJECT}
    deep = {"crew.toml": CREW, "lib/pkg/crew.py": GO, "pyproject.toml": PROJECT}
    assert key(flat, "one") == key(flat, "two")
    assert key(deep, "one") != key(deep, "two")


def test_dynamic_dependencies_are_left_to_pip() -> None:
    dynamic = "[project]\ndynamic = ['dependencies']\n[build-system]\nrequires = ['setuptools']\n"
    files = {"crew.toml": CREW, "lib/pkg/crew.py": GO, "pyproject.toml": dynamic}
    assert planned(files).declaration.lines == ()
    with pytest.raises(PlanError) as raised:
        planned(files, private_index=True)  # whose wheels have to be known beforehand
    assert raised.value.reason == "DependencyResolution"


def test_private_index_installs_offline() -> None:
    files = {"crew.toml": CREW, "lib/pkg/crew.py": GO, "pyproject.toml": PROJECT}
    declaration = planned(files, private_index=True).declaration
    assert declaration.build_requires == ("hatchling", "setuptools", "wheel")
    text = dockerfile("base", declaration)
    for tool in ("PIP", "UV"):
        assert text.count(f"{tool}_NO_INDEX=1 {tool}_FIND_LINKS=/workspace/wheels") == 1
    assert "global.index-url" not in text
    assert key(files, "t") != key(files, "t", private_index=True)
    one, other = (dependencies_key(declaration, "3.11", "base", "t", name) for name in ("one", "other"))
    assert one != other


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("x @ https://h/x-1-py3-none-any.whl", True),
        ("x @ https://h/x-1-py3-none-any.whl#sha256=00", True),
        ("--extra-index-url https://h/simple", True),
        ("x @ git+https://h/x.git", False),
        ("x @ https://h/x-1.tar.gz", False),
        ("https://h/x.zip ; python_version > '3'", False),
    ],
)
def test_only_wheel_urls_with_a_private_index(line: str, allowed: bool) -> None:
    files = {"main.py": "def kickoff(): ...\n", "requirements.txt": f"{line}\n"}
    assert planned(files).declaration.lines == (line,)
    if allowed:
        assert planned(files, private_index=True).declaration.lines == (line,)
    else:
        with pytest.raises(PlanError, match="wheels only"):
            planned(files, private_index=True)


@pytest.mark.parametrize(
    "line",
    [
        "-r /proc/1/environ --pre",
        "--pre -r /proc/1/environ",
        "--requir=/proc/1/environ",
        "--constr /proc/1/environ",
        "--extra-index-url https://elsewhere/${PIP_INDEX_URL}",
        "x @ https://elsewhere/${PIP_INDEX_URL}/x-1-py3-none-any.whl",
        "x @ file:/proc/1/environ",
        "--editable=git+https://h/x.git",
    ],
)
def test_unsafe_lines_with_a_private_index(line: str) -> None:
    files = {"main.py": "def kickoff(): ...\n", "requirements.txt": f"langgraph\n{line}\n"}
    with pytest.raises(PlanError) as raised:
        planned(files, private_index=True)
    assert raised.value.reason == "DependencyResolution" and raised.value.hint
    bounds = {"main.py": "", "requirements.txt": "-c bounds.txt\n", "bounds.txt": f"{line}\n"}
    with pytest.raises(PlanError):
        planned({**bounds, "main.py": "def kickoff(): ...\n"}, private_index=True)


@pytest.mark.parametrize(
    "tool", ["-r /proc/1/environ", " -r x", "a\\n-r /proc/1/environ", "a\\u2028-r x", "#", "a\\\\"]
)
def test_unsafe_build_requirements_with_a_private_index(tool: str) -> None:
    project = f'[project]\nname = "pkg"\ndependencies = []\n[build-system]\nrequires = ["{tool}"]\n'
    files = {"crew.toml": CREW, "lib/pkg/crew.py": GO, "pyproject.toml": project}
    with pytest.raises(PlanError) as raised:
        planned(files, private_index=True)
    assert raised.value.reason == "DependencyResolution"


@pytest.mark.parametrize(
    "line",
    [
        "langgraph==1.2 --hash=sha256:aa",
        "-i https://h/simple",
        "--index-url=https://h/simple",
        "--only-binary :all:",
        "--pre",
        "crewai[tools]>=1,<2; python_version > '3'",
        "zope.interface~=5",
    ],
)
def test_ordinary_lines_with_a_private_index(line: str) -> None:
    files = {"main.py": "def kickoff(): ...\n", "requirements.txt": f"{line}\n"}
    assert planned(files, private_index=True).declaration.lines == (line,)


def test_unsafe_directory_name_is_refused() -> None:
    files = {"crew.toml": CREW, "a b/src/pkg/crew.py": GO, "a b/pyproject.toml": PROJECT}
    with pytest.raises(PlanError, match="unsupported characters"):
        planned(files)


def test_broken_toml_is_not_a_project() -> None:
    assert not is_project({"pyproject.toml": b"[project"}, "")
