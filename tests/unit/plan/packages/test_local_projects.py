"""Names that a repository redirects: directories, git, URLs; without a lock."""

import re

import pytest

from plan.config.configuration import Configuration
from plan.errors import PlanError
from plan.make import make_plan
from plan.packages.dependencies import DependencyDeclaration, read_dependencies
from plan.packages.dockerfile import dockerfile
from plan.packages.local_projects import local_directory
from tests.testbed.public_index import with_public_index

SHARED = "[project]\nname = 'Shared_Tools'\ndependencies = ['click>=8']\n"
ROOT = "[tool.uv.workspace]\nmembers = ['packages/*']\nexclude = ['packages/old']\n"


def declared(files: dict[str, str], base: str = "", private_index: bool = False) -> DependencyDeclaration:
    data = {path: text.encode() for path, text in files.items()}
    return read_dependencies(data, Configuration("x"), private_index=private_index, base=base)


def project(dependencies: str, sources: str = "", name: str = "crew") -> str:
    table = f"[project]\nname = '{name}'\ndependencies = [{dependencies}]\n"
    return table + (f"[tool.uv.sources]\n{sources}\n" if sources else "")


@pytest.mark.parametrize(
    "files",
    [
        {"requirements.txt": "six\n./libs/shared\n"},
        {"requirements.txt": "six\n-e ./libs/shared\n"},
        {"requirements.txt": "six\nshared-tools @ file:./libs/shared\n"},
        {"requirements.txt": "-r more/base.txt\n", "more/base.txt": "six\n-e libs/shared\n"},
        {"pyproject.toml": project("'six', 'shared-tools'", "shared-tools = {path = './libs/shared'}")},
        {"pyproject.toml": project("'six', 'shared-tools @ file:./libs/shared'")},
        {"pyproject.toml": project("'six', 'shared-tools @ libs/shared'")},
        {
            "requirements.txt": "six\nshared-tools\n",
            "pyproject.toml": project("", "shared-tools = {path = 'libs/shared'}"),
        },
        {
            "requirements.txt": "six @ https://x/six.whl\nshared-tools==1 --hash=sha256:aa\n",
            "pyproject.toml": project(
                "", "shared-tools = {path = 'libs/shared'}\nsix = {path = 'libs/shared'}"
            ),
        },
        {
            "pyproject.toml": "[tool.poetry]\nname = 'crew'\n[tool.poetry.dependencies]\npython = '^3.11'\n"
            "six = '*'\nshared-tools = {path = 'libs/shared', develop = true}\n"
        },
    ],
)
def test_local_projects_are_installed_from_the_repository(files: dict[str, str]) -> None:
    declaration = declared({**files, "libs/shared/pyproject.toml": SHARED})
    assert declaration.projects == ("libs/shared",)
    assert {line.partition(" @ ")[0] for line in declaration.lines} == {"six", "click>=8"}
    assert declaration.build_requires == ()
    command = dockerfile("base", declaration)
    assert command.count("install -r") == 1
    assert "-r /workspace/declared/requirements.txt /workspace/tree/libs/shared" in command


def test_members_of_a_workspace_find_one_another() -> None:
    files = {
        "pyproject.toml": ROOT + "[tool.uv.sources]\nforked = {git = 'https://github.com/o/r', tag = 'v1'}\n",
        "packages/agent/pyproject.toml": project("'one', 'forked[x]'", "one = {workspace = true}"),
        "packages/one/pyproject.toml": project("'two'", "two = {workspace = true}", "one"),
        "packages/two/pyproject.toml": project("'six'", name="two"),
        "packages/old/pyproject.toml": project("'nine'", name="old"),
    }
    declaration = declared(files, "packages/agent")
    assert declaration.projects == ("packages/one", "packages/two")
    assert declaration.lines == ("forked[x] @ https://github.com/o/r/archive/v1.tar.gz", "six")
    # uv refuses a member without a source; its name does not reach an index either.
    files["packages/agent/pyproject.toml"] = project("'one'")
    assert declared(files, "packages/agent").projects == ("packages/one", "packages/two")
    files["packages/agent/pyproject.toml"] = project("'old'")
    assert declared(files, "packages/agent").lines == ("old",)


@pytest.mark.parametrize(("package", "installed"), [("false", ()), ("true", ("packages/one",))])
def test_a_member_that_is_no_package_gives_its_requirements(package: str, installed: tuple[str, ...]) -> None:
    files = {
        "pyproject.toml": ROOT,
        "packages/agent/pyproject.toml": project("'one'", "one = {workspace = true}"),
        "packages/one/pyproject.toml": project("'six'", name="one") + f"[tool.uv]\npackage = {package}\n",
    }
    declaration = declared(files, "packages/agent")
    assert (declaration.projects, declaration.lines) == (installed, ("six",))


def test_a_requirements_file_names_a_member_of_the_workspace() -> None:
    files = {
        "pyproject.toml": ROOT,
        "requirements.txt": "one>=1\n",
        "packages/one/pyproject.toml": project("'six'", name="one"),
    }
    found = declared(files)
    assert (found.projects, found.lines) == (("packages/one",), ("six",))


def test_a_hidden_directory_is_not_the_one_with_its_name() -> None:
    files = {
        "crew/requirements.txt": "-e ../.crew\n",
        "crew/pyproject.toml": project(""),
        ".crew/pyproject.toml": project("'six'", name="hidden"),
    }
    found = declared(files, "crew")
    assert (found.projects, found.lines) == ((".crew",), ("six",))


NOT_HERE = "sys_platform == 'win32' or python_version < '3.11'"


@pytest.mark.parametrize(
    ("marker", "projects"),
    [
        (NOT_HERE, ()),
        ("platform_machine == 'aarch64'", ("libs/shared",)),
        ("python_version < '3.12'", ("libs/shared",)),
    ],
)
@pytest.mark.parametrize(
    "files",
    [
        {"requirements.txt": "./libs/shared ; {marker}\n"},
        {"requirements.txt": "-e ./libs/shared ; {marker}\n"},
        {
            "requirements.txt": "shared-tools ; {marker}\n",
            "pyproject.toml": project("", "shared-tools = {path = 'libs/shared'}"),
        },
        {"pyproject.toml": project('"shared-tools ; {marker}"', "shared-tools = {path = './libs/shared'}")},
    ],
)
def test_a_local_project_for_another_platform_is_left_out(
    files: dict[str, str], marker: str, projects: tuple[str, ...]
) -> None:
    files = {path: text.replace("{marker}", marker) for path, text in files.items()}
    found = declared({**files, "libs/shared/pyproject.toml": SHARED})
    assert (found.projects, found.lines) == (projects, ("click>=8",) if projects else ())


def test_a_marker_of_a_path_that_is_none_is_refused() -> None:
    files = {"requirements.txt": "./libs/shared ; linux\n", "libs/shared/pyproject.toml": SHARED}
    with pytest.raises(PlanError, match=r"requirements\.txt line 1: 'linux' is not a valid marker"):
        declared(files)


def test_extras_of_a_local_project() -> None:
    shared = SHARED + "[project.optional-dependencies]\npdf = ['pypdf']\n"
    files = {"requirements.txt": "./libs/shared[pdf]\n", "libs/shared/pyproject.toml": shared}
    assert declared(files).lines == ("click>=8", "pypdf")


def test_extras_of_a_project_without_a_list_of_dependencies() -> None:
    dynamic = "[project]\nname = 'x'\ndynamic = ['dependencies']\n"
    extras = "[project.optional-dependencies]\npdf = ['pypdf>=4', 'x[web]']\nweb = ['httpx']\n"
    declaration = declared({"requirements.txt": "-e .[pdf]\n", "pyproject.toml": dynamic + extras})
    assert (declaration.lines, declaration.projects) == (("pypdf>=4", "httpx"), ("",))


def test_a_wheel_of_the_repository() -> None:
    files = {"requirements.txt": "./wheels/mine-1-py3-none-any.whl\n", "wheels/mine-1-py3-none-any.whl": "x"}
    assert declared(files).projects == ("wheels/mine-1-py3-none-any.whl",)


def test_a_private_index_gets_no_redirected_name() -> None:
    files = {
        "pyproject.toml": project("'shared-tools'", "shared-tools = {path = 'libs/shared'}"),
        "libs/shared/pyproject.toml": SHARED,
    }
    assert declared(files, private_index=True).lines == ("click>=8",)


def poetry(dependency: str) -> str:
    """Return a pyproject.toml of Poetry with one dependency."""
    return f"[tool.poetry]\nname = 'crew'\n[tool.poetry.dependencies]\npython = '^3.11'\n{dependency}\n"


GIT = "https://git.example.com/a"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (f"git = '{GIT}'", f'a[x,y] @ git+{GIT}@HEAD ; os_name == "posix"'),
        (f"git = '{GIT}', rev = '1a', tag = 'v1'", f'a[x,y] @ git+{GIT}@1a ; os_name == "posix"'),
        (f"git = '{GIT}', tag = 'v1'", f'a[x,y] @ git+{GIT}@v1 ; os_name == "posix"'),
        (
            f"git = '{GIT}', branch = 'dev', subdirectory = 'b/c'",
            f'a[x,y] @ git+{GIT}@dev#subdirectory=b/c ; os_name == "posix"',
        ),
        ("url = 'https://x/a.zip'", 'a[x,y] @ https://x/a.zip ; os_name == "posix"'),
        (
            "url = 'https://x/a.zip', subdirectory = 'b'",
            'a[x,y] @ https://x/a.zip#subdirectory=b ; os_name == "posix"',
        ),
        ("index = 'https://public-index.example/simple'", "a[y,x]>=1; os_name == 'posix'"),
        ("source = 'https://public-index.example/simple'", "a[y,x]>=1; os_name == 'posix'"),
    ],
)
def test_a_name_that_the_repository_redirects_gets_the_address(source: str, line: str) -> None:
    sources = with_public_index(f"a = {{{source}}}\nb = {{url = 'https://x/b.whl'}}")
    files = {"pyproject.toml": project("\"a[y,x]>=1; os_name == 'posix'\", 'b'", sources)}
    assert declared(files).lines == (line, "b @ https://x/b.whl")


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (".", ""),
        ("libs/a", "libs/a"),
        ("../main/libs/../libs/a/", "libs/a"),
        ("w/a.whl", "w/a.whl"),
        ("w/a.tar.gz", "w/a.tar.gz"),
        ("w/a.zip", "w/a.zip"),
        ("w/a.txt", None),
        ("libs", None),
        ("gone", None),
        ("..", None),
        ("../..", None),
        ("../../libs/a", None),
        ("/libs/a", None),
        ("~/libs/a", None),
        ("file:libs/a", None),
    ],
)
def test_a_path_names_a_project_or_an_archive_of_the_source(target: str, path: str | None) -> None:
    names = (
        "setup.py",
        "libs/a/setup.py",
        "w/a.whl",
        "w/a.tar.gz",
        "w/a.zip",
        "w/a.txt",
        "~/libs/a/setup.py",
    )
    files = {f"main/{name}": b"" for name in (*names, "file:libs/a/setup.py")}
    if path is None:
        with pytest.raises(PlanError, match=re.escape(f"here names {target}, which is ")) as raised:
            local_directory(files, "main", target, "here")
        assert raised.value.reason == "DependencyResolution" and raised.value.hint
    else:
        assert local_directory(files, "main", target, "here") == f"main/{path}".rstrip("/")
    assert local_directory({"setup.py": b""}, "", ".", "here") == ""


def test_projects_of_a_cycle_are_installed_once() -> None:
    files = {
        "pyproject.toml": project("'one', 'two[x]'", "one = {path = 'one'}\ntwo = {path = 'two'}"),
        "one/pyproject.toml": project("'two', 'six'", "two = {path = '../two'}", "one"),
        "two/pyproject.toml": project(
            "'one', 'crew', 'ten'", "one = {path = '../one'}\ncrew = {path = '..'}", "two"
        )
        + "[project.optional-dependencies]\nx = ['click']\n",
    }
    declaration = declared(files)
    assert declaration.projects == ("one", "two")
    assert declaration.lines == ("six", "ten", "click")


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ({"pyproject.toml": project("'a'", "a = {path = '../a'}")}, "a names ../a, which is outside"),
        ({"pyproject.toml": project("'a'", "a = {path = '/a'}")}, "a names /a, which is outside"),
        ({"pyproject.toml": project("'a'", "a = {path = 'a'}")}, "not a Python project of the source"),
        ({"pyproject.toml": project("'a'", "a = {workspace = true}")}, "has no such member"),
        ({"pyproject.toml": project("'a'", "a = {index = 'ours'}")}, "only a lock can pin"),
        ({"pyproject.toml": project("'a'", "a = [{index='x'}, {index='y'}]")}, "only a lock can pin"),
        ({"pyproject.toml": project("'a'", "a = {url = 'https://x y'}")}, "invalid address"),
        ({"pyproject.toml": poetry("a = [{path = 'a', python = '<3.13'}, '^1']")}, "only a lock can pin"),
        ({"pyproject.toml": poetry("a = [{source = 'ours'}]")}, "only a lock can pin"),
        (
            {"pyproject.toml": poetry("a = [{url = 'https://x/a.whl'}, '^1']"), "requirements.txt": "a\n"},
            "only a lock can pin",
        ),
        (
            {
                "pyproject.toml": project("'a'", "a = {path = 'a'}"),
                "a/pyproject.toml": "[project]\nname='a'\n[build-system]\nrequires=['B']\n",
                "requirements.txt": "./a\n./b\n",
                "b/pyproject.toml": "[project]\nname='b'\n",
            },
            "[build-system] requires B, which is a project of the repository",
        ),
        (
            {"pyproject.toml": project("'a @ file:///a'")},
            "pyproject.toml: a @ file:///a names file:///a, which is outside of the source",
        ),
        ({"pyproject.toml": project("'a @ file:gone'")}, "names gone, which is not a Python project"),
    ],
)
def test_unsupported_local_project_is_refused(files: dict[str, str], part: str) -> None:
    with pytest.raises(PlanError) as raised:
        declared(files)
    assert raised.value.reason == "DependencyResolution"
    assert part in raised.value.message


@pytest.mark.parametrize("line", ["a==1", "-e ."])
def test_requirements_that_come_before_a_lock_are_named(line: str) -> None:
    files = {"pyproject.toml": project("'a'", "a = {index = 'ours'}"), "requirements.txt": f"{line}\n"}
    with pytest.raises(PlanError, match=r"and requirements\.txt comes before a lock") as raised:
        declared({**files, "uv.lock": ""})
    assert raised.value.reason == "DependencyResolution"
    assert "Remove requirements.txt, so that the lock applies" in raised.value.hint
    with pytest.raises(PlanError) as raised:
        declared({"pyproject.toml": files["pyproject.toml"]})
    assert raised.value.hint.startswith("Lock it")


def test_ignored_declaration_is_noted() -> None:
    files = {"main.py": "def kickoff(): ...\n", "Pipfile": "", "environment.yml": ""}
    data = {path: text.encode() for path, text in files.items()}
    (note,) = make_plan(data, None, ["3.11"]).notes
    assert note == (
        "ignored: Pipfile, environment.yml; "
        "the dependencies come from no file; add a requirements.txt or a pyproject.toml"
    )
    (note,) = make_plan({**data, "requirements.txt": b"six\n", "uv.lock": b""}, None, ["3.11"]).notes
    assert note == "ignored: uv.lock, Pipfile, environment.yml; the dependencies come from requirements.txt"


def test_an_ignored_setup_py_is_noted() -> None:
    files = {"main.py": b"def kickoff(): ...\n", "setup.py": b""}
    (note,) = make_plan(files, None, ["3.11"]).notes
    assert note.startswith("ignored: setup.py; the dependencies come from no file")
    assert make_plan({**files, "requirements.txt": b"six\n"}, None, ["3.11"]).notes == ()
    assert make_plan({**files, "requirements.txt": b"-e .\n"}, None, ["3.11"]).notes == ()


def test_uv_source_of_langgraph_names_a_member() -> None:
    files = {
        "langgraph.json": '{"graphs": {"a": "./packages/agent/src/agent/graph.py:graph"}, '
        '"source": {"kind": "uv", "root": ".", "package": "agent"}}',
        "pyproject.toml": ROOT,
        "packages/agent/pyproject.toml": project("'one', 'langgraph'", "one = {workspace = true}", "agent"),
        "packages/agent/src/agent/graph.py": "graph = 1\n",
        "packages/one/pyproject.toml": project("'six'", name="one"),
    }
    planned = make_plan({path: text.encode() for path, text in files.items()}, None, ["3.12"])
    assert planned.plan.entrypoint == "agent.graph:graph"
    assert planned.declaration.projects == ("packages/agent", "packages/one")
    assert planned.declaration.lines == ("langgraph", "six")


@pytest.mark.parametrize("line", ["-e .", ".", "--editable ./", "-e file:."])
@pytest.mark.parametrize(
    "project",
    [
        {"setup.py": "raise SystemExit"},
        {"setup.cfg": "[metadata]\nname = x\n"},
        {"setup.py": "", "pyproject.toml": "[build-system]\nrequires = ['setuptools']\n"},
        {"pyproject.toml": "[project]\nname = 'x'\ndynamic = ['dependencies']\n"},
    ],
)
def test_pip_reads_the_dependencies_that_the_plan_cannot(line: str, project: dict[str, str]) -> None:
    declaration = declared({"requirements.txt": f"six\n{line}\n", **project})
    assert (declaration.lines, declaration.projects) == (("six",), ("",))
    assert "/workspace/tree" in dockerfile("base", declaration)


@pytest.mark.parametrize(
    "table", ["[project]\nname = 'x'\n", "[project]\nversion = '1'\n", "[tool.poetry]\nname = 'x'\n"]
)
def test_a_project_without_dependencies_is_not_installed(table: str) -> None:
    declaration = declared({"requirements.txt": "six\n-e .\n", "pyproject.toml": table})
    assert (declaration.lines, declaration.projects) == (("six",), ())


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ({"requirements.txt": "six\n-e .\n"}, "requirements.txt line 2 names ., which is not"),
        (
            {"requirements.txt": "-e .\n", "pyproject.toml": "[tool.ruff]\n"},
            "requirements.txt line 1 names ., which is not",
        ),
        (
            {"requirements.txt": "six\n-e .[pdf]\n", "setup.py": ""},
            "requirements.txt line 2 asks for extras (pdf), which only executing the project would tell",
        ),
        (
            {
                "pyproject.toml": project("'a[pdf]'", "a = {path = 'a'}"),
                "a/setup.py": "",
            },
            "a asks for extras (pdf), which only executing the project would tell",
        ),
    ],
)
def test_a_project_that_installs_nothing_is_refused(files: dict[str, str], part: str) -> None:
    with pytest.raises(PlanError) as raised:
        declared(files)
    assert raised.value.reason == "DependencyResolution" and raised.value.hint
    assert part in raised.value.message
