"""Members of a uv workspace, and who finds it."""

import pytest

from plan.errors import PlanError
from plan.packages.project_table import Redirect
from plan.packages.workspace import Workspace, find_workspace

ROOT = """\
[project]
name = "Root_x"
[tool.uv.sources]
forked = {git = "https://git.example.com/r"}
[tool.uv.workspace]
members = ["packages/*", "./tools/[ab]?/x"]
exclude = ["packages/old*"]
"""


def project(name: str) -> str:
    return f"[project]\nname = '{name}'\n"


MEMBERS = {
    "packages/One_x/pyproject.toml": project("One_x"),
    "packages/two/pyproject.toml": project("two"),
    "packages/two/sub/pyproject.toml": project("sub"),
    "packages/older/pyproject.toml": project("older"),
    "packages/nameless/pyproject.toml": "[tool.ruff]\n",
    "packages/three/setup.py": "",
    "packages.toml/pyproject.toml": project("beside"),
    "tools/a1/x/pyproject.toml": project("tool"),
    "tools/c1/x/pyproject.toml": project("other"),
}


def found(files: dict[str, str], directory: str) -> Workspace | None:
    return find_workspace({path: text.encode() for path, text in files.items()}, directory)


@pytest.mark.parametrize("base", ["", "mono"])
@pytest.mark.parametrize("member", ["", "packages/One_x", "packages/two", "tools/a1/x"])
def test_the_root_and_each_member_find_the_workspace(base: str, member: str) -> None:
    prefix = f"{base}/" if base else ""
    files = {f"{prefix}{path}": text for path, text in {"pyproject.toml": ROOT, **MEMBERS}.items()}
    files["monolith/packages/two/pyproject.toml"] = project("far")
    files |= {"packages/far/pyproject.toml": project("far")} if base else {}
    origin = f"{prefix}pyproject.toml line 4: tool.uv.sources.forked"
    assert found(files, f"{prefix}{member}".rstrip("/")) == Workspace(
        base,
        {
            "root-x": base,
            "one-x": f"{prefix}packages/One_x",
            "two": f"{prefix}packages/two",
            "tool": f"{prefix}tools/a1/x",
        },
        {"forked": Redirect(origin, base, {"git": "https://git.example.com/r"})},
    )


@pytest.mark.parametrize(
    ("pattern", "members"),
    [
        ("**", {"a", "a/b", "a/b/c", "x"}),
        ("a/**", {"a", "a/b", "a/b/c"}),
        ("**/b", {"a/b"}),
        ("**/b/**", {"a/b", "a/b/c"}),
        ("**/**/c", {"a/b/c"}),
        ("a/**/c", {"a/b/c"}),
        ("a/**/b", {"a/b"}),
        ("*", {"a", "x"}),
        ("a*/*", {"a/b"}),
    ],
)
def test_two_stars_are_any_number_of_directories(pattern: str, members: set[str]) -> None:
    files = {f"{path}/pyproject.toml": project(path.replace("/", "-")) for path in ("a", "a/b", "a/b/c", "x")}
    files["pyproject.toml"] = f"[tool.uv.workspace]\nmembers = ['{pattern}']\n"
    workspace = found(files, "")
    assert workspace is not None and set(workspace.members.values()) == members


@pytest.mark.parametrize(
    "directory", ["packages/older", "packages/two/sub", "tools/c1/x", "packages.toml", "gone"]
)
def test_others_find_no_workspace(directory: str) -> None:
    assert found({"pyproject.toml": ROOT, **MEMBERS}, directory) is None


@pytest.mark.parametrize("text", ["", "[tool.ruff]\n", "[tool.uv]\npackage = true\n"])
def test_a_project_without_a_workspace_table_is_none(text: str) -> None:
    assert found({"pyproject.toml": text}, "") is None


def test_the_nearest_workspace_with_the_member_is_found() -> None:
    files = {
        "pyproject.toml": "[tool.uv.workspace]\nmembers = ['a/b']\n",
        "a/pyproject.toml": "[tool.uv.workspace]\nmembers = ['c']\n",
        "a/b/pyproject.toml": project("b"),
        "a/c/pyproject.toml": project("c"),
    }
    assert found(files, "a/b") == Workspace("", {"b": "a/b"}, {})
    assert found(files, "a/c") == Workspace("a", {"c": "a/c"}, {})


@pytest.mark.parametrize(("key", "example"), [("members", "packages/*"), ("exclude", "packages/old")])
def test_patterns_must_be_a_list(key: str, example: str) -> None:
    with pytest.raises(PlanError) as raised:
        found({"pyproject.toml": f"[tool.uv.workspace]\n{key} = 'x'\n"}, "")
    assert raised.value.message == f"pyproject.toml line 2: tool.uv.workspace.{key} must be a list of strings"
    assert raised.value.hint == f'For example: {key} = ["{example}"].'
