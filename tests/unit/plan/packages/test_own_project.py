"""Crews that must be installed before import: detection, declaration, key of the dependency image."""

import pytest

from plan.errors import PlanError
from plan.keys import dependencies_key
from plan.make import Planned, make_plan
from plan.packages.dockerfile import dockerfile
from plan.packages.own_project import (
    build_requires,
    find_project,
    is_project,
    lacks_build_file,
    may_read_git,
)

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


@pytest.mark.parametrize(
    ("paths", "module", "found"),
    [
        (("pyproject.toml", "lib/pkg/crew.py"), "pkg.crew", ("lib/pkg/crew.py", "")),
        (("lib/setup.py", "lib/pkg/crew/__init__.py"), "pkg.crew", ("lib/pkg/crew/__init__.py", "lib")),
        (("a/b/setup.py", "a/b/src/pkg/crew.py"), "pkg.crew", ("a/b/src/pkg/crew.py", "a/b")),
        # The least deep one, then the first one.
        (("setup.py", "a/b/crew.py", "z/crew.py", "y/crew.py"), "crew", ("y/crew.py", "")),
        # A module that no project installs cannot be chosen.
        (("a/crew.py", "b/crew.py", "b/setup.py"), "crew", ("b/crew.py", "b")),
        (("a/crew.py", "b/src/crew.py"), "crew", None),
        # A module of a package has a longer name.
        (("pyproject.toml", "lib/pkg/__init__.py", "lib/pkg/crew.py"), "crew", None),
        (("setup.py", "lib/__init__.py", "lib/crew/__init__.py"), "crew", None),
        (("setup.py", "lib/pkg/__init__.py", "lib/pkg/crew.py"), "pkg.crew", ("lib/pkg/crew.py", "")),
        (("setup.py", "a/__init__.py", "a/crew.py", "b/crew.py"), "crew", ("b/crew.py", "")),
    ],
)
def test_the_file_of_a_module_and_the_project_above_it(
    paths: tuple[str, ...], module: str, found: tuple[str, str] | None
) -> None:
    files = {path: PROJECT.encode() if path.endswith("toml") else b"" for path in paths}
    assert find_project(files, module) == found


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"x/setup.py": ""}, True),
        ({"x/setup.py": "", "x/__init__.py": ""}, False),
        ({"x/pyproject.toml": "[project]\n"}, True),
        ({"x/pyproject.toml": "[build-system]\n"}, True),
        ({"x/pyproject.toml": "[tool.ruff]\n"}, False),
        ({"x/pyproject.toml": "[project"}, False),
        ({"x/pyproject.toml": "a = " + "[" * 10_000}, False),
        ({"x/pyproject.toml": "a = " + "9" * 5000}, False),
        ({"x/pyproject.toml": "[tool.ruff]\n", "x/setup.cfg": "[flake8]\n[options]\n"}, True),
        ({"x/setup.cfg": "[metadata]\n"}, True),
        ({"x/setup.cfg": "[flake8]\n"}, False),
        ({"setup.py": "", "pyproject.toml": "[project]\n", "setup.cfg": "[options]\n"}, False),
    ],
)
def test_a_directory_that_pip_could_install_is_a_project(files: dict[str, str], expected: bool) -> None:
    assert is_project({path: text.encode() for path, text in files.items()}, "x") is expected


def test_a_package_in_the_root_does_not_hide_the_project() -> None:
    assert is_project({"setup.py": b"", "__init__.py": b""}, "")


@pytest.mark.parametrize(
    ("names", "lacks"), [(("setup.cfg",), True), (("x", "setup.py"), False), (("pyproject.toml",), False)]
)
def test_a_project_with_only_a_setup_cfg_lacks_a_build_file(names: tuple[str, ...], lacks: bool) -> None:
    assert lacks_build_file(names) is lacks


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"x/setup.py": ""}, ("setuptools", "wheel")),
        ({"x/pyproject.toml": "[project]\n"}, ("setuptools", "wheel")),
        ({"x/pyproject.toml": "[build-system]\n"}, ("setuptools", "wheel")),
        (
            {"x/pyproject.toml": "[build-system]\nrequires = ['cython', 'wheel']\n"},
            ("cython", "wheel", "setuptools"),
        ),
        (
            {"x/pyproject.toml": "[build-system]\nrequires = ['hatchling']\nbuild-backend = 'b'\n"},
            ("hatchling",),
        ),
        (
            {
                "w/a.whl": "",
                "x/pyproject.toml": "[build-system]\nrequires = ['flit']\nbuild-backend = 'b'\n",
            },
            ("flit",),
        ),
    ],
)
def test_tools_of_projects_are_those_of_pip(files: dict[str, str], expected: tuple[str, ...]) -> None:
    data = {path: text.encode() for path, text in files.items()}
    assert build_requires(data, (*[path for path in files if path.startswith("w/")], "x")) == expected


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


@pytest.mark.parametrize(
    ("more", "pretended"),
    [
        ({}, False),
        ({"pyproject.toml": PROJECT.replace("hatchling", "setuptools_scm>=8")}, True),
        ({"pyproject.toml": PROJECT.replace("hatchling", "hatch-vcs")}, True),
        ({"pyproject.toml": PROJECT.replace("hatchling", "PBR")}, True),
        ({"setup.py": "setup(use_scm_version=True)"}, True),
        ({"setup.cfg": "[options]\nsetup_requires = pbr\n"}, True),
        ({"docs/setup.cfg": "[options]\nsetup_requires = pbr\n"}, False),
        ({"setup.py": b"# \xe9t\xe9\n"}, False),
    ],
)
def test_a_version_is_pretended_where_a_project_may_take_it_from_git(
    more: dict[str, str | bytes], pretended: bool
) -> None:
    """The variables hold for the dependencies, too: one that pip builds would get the version 0.0.0."""
    files = {"crew.toml": CREW, "lib/pkg/crew.py": GO, "pyproject.toml": PROJECT, **more}
    data = {path: text if isinstance(text, bytes) else text.encode() for path, text in files.items()}
    declaration = make_plan(data, None, ["3.11"], False).declaration
    assert declaration.projects == ("",)
    assert ("SETUPTOOLS_SCM_PRETEND_VERSION=0.0.0" in dockerfile("base", declaration)) is pretended


def test_a_version_is_pretended_for_an_archive() -> None:
    assert may_read_git({"w/a.tar.gz": b""}, ("w/a.tar.gz",))


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
    files = {"main.py": "def kickoff(): ...\n", "requirements.txt": f"--pre\nlanggraph\n{line}\n"}
    with pytest.raises(PlanError) as raised:
        planned(files, private_index=True)
    assert raised.value.reason == "DependencyResolution" and raised.value.hint
    assert line.rpartition(" ")[2] in raised.value.message
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
    assert raised.value.reason == "DependencyResolution" and raised.value.message.startswith("'")


@pytest.mark.parametrize(
    "line",
    [
        "langgraph==1.2 --hash=sha256:aa",
        "-i https://h/simple",
        "--index-url=https://h/simple",
        "--only-binary :all:",
        "--pre",
        "LangGraph",
        "crewai[tools]>=1,<2; python_version > '3'",
        "zope.interface~=5",
    ],
)
def test_ordinary_lines_with_a_private_index(line: str) -> None:
    files = {"main.py": "def kickoff(): ...\n", "requirements.txt": f"{line}\n"}
    assert planned(files, private_index=True).declaration.lines == (line,)


def test_tools_must_be_a_list() -> None:
    with pytest.raises(PlanError) as raised:
        build_requires({"pyproject.toml": b"[build-system]\nrequires = 'x'\n"}, ("",))
    assert raised.value.message == "pyproject.toml line 2: build-system.requires must be a list of strings"
    assert raised.value.hint == 'For example: requires = ["hatchling"].'


def test_unsafe_directory_name_is_refused() -> None:
    files = {"crew.toml": CREW, "a b/src/pkg/crew.py": GO, "a b/pyproject.toml": PROJECT}
    with pytest.raises(PlanError, match="the project in 'a b' must be installed") as raised:
        planned(files)
    assert raised.value.reason == "ConfigInvalid" and raised.value.hint
