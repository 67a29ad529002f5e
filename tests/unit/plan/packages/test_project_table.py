"""What a pyproject.toml declares: requirements with extras and groups, and where they come from."""

from typing import Any

import pytest

from plan.config.configuration import Configuration
from plan.errors import PlanError
from plan.packages.dependencies import read_dependencies
from plan.packages.poetry_table import poetry_requirement
from plan.packages.project_table import ProjectTable, Redirect, read_project_table

SETUPTOOLS = "[project]\nname = 'x'\ndynamic = ['dependencies']\n[tool.setuptools.dynamic]\n"
EXTRAS = """\
[project]
name = "My_Crew"
dependencies = ["a", "my.crew[Web]"]
[project.optional-dependencies]
web = ["b>=2, <3", "my-crew[p_df,web]"]
P-df = ["c"]
[tool.poetry.dependencies]
unread = "*"
"""
POETRY = """\
[tool.poetry]
name = "My_Crew"
[tool.poetry.dependencies]
python = "^3.11"
a = "^1.2"
b = {version = "^2", optional = true}
c_d = [{version = "<2", python = "<3.12", optional = true}, {version = ">=2", optional = true}]
[tool.poetry.extras]
Web = ["b", "C.d"]
[tool.poetry.group.L_lm.dependencies]
e = "*"
[tool.poetry.group.empty]
optional = true
"""
GROUPS = """\
[project]
name = "x"
dependencies = []
[dependency-groups]
Te-st = ["f", {include-group = "more"}]
more = ["g"]
[tool.poetry.group.more.dependencies]
unread = "*"
"""


def table(text: str, path: str = "pyproject.toml") -> ProjectTable:
    return read_project_table({path: text.encode()}, path)


@pytest.mark.parametrize(
    ("text", "extras", "groups", "lines"),
    [
        ("[tool.ruff]\n", (), (), []),
        (EXTRAS, (), (), ["a", "b>=2, <3", "c"]),
        (EXTRAS, ("p.df",), (), ["a", "c", "b>=2, <3"]),
        (EXTRAS.replace(', "my.crew[Web]"', ""), ("p.df",), (), ["a", "c"]),
        (POETRY, (), (), ["a<2,>=1.2"]),
        (POETRY.replace('{version = ">=2", optional = true}', '">=2"'), (), (), ["a<2,>=1.2", "c_d>=2"]),
        (
            POETRY,
            ("web",),
            ("l-lm", "empty"),
            ["a<2,>=1.2", "e", "b<3,>=2", 'c_d<2; python_version < "3.12"', "c_d>=2"],
        ),
        (
            "[project]\nname = 'x'\ndependencies = ['a']\n[tool.poetry.extras]\nw = ['b', 'c>=5']\n"
            "[tool.poetry.dependencies]\nb = {version = '^2', optional = true}\n",
            ("w",),
            (),
            ["a", "b<3,>=2", "c>=5"],
        ),
        (GROUPS, (), ("te_st", "more"), ["f", "g", "g"]),
        (
            "[project]\nname = 'x'\ndynamic = ['dependencies']\n[tool.poetry.dependencies]\na = '~1.2.3'\n",
            (),
            (),
            ["a<1.3,>=1.2.3"],
        ),
    ],
)
def test_requirements_with_extras_and_groups(
    text: str, extras: tuple[str, ...], groups: tuple[str, ...], lines: list[str]
) -> None:
    assert [str(each) for each in table(text).requirements(extras, groups)] == lines


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("*", "x"),
        ("", "x"),
        ("1.2", "x==1.2"),
        ("= v1.2", "x==1.2"),
        ("1.*", "x==1.*"),
        ("^1.2.3", "x<2,>=1.2.3"),
        ("^ v0.2.3", "x<0.3,>=0.2.3"),
        ("^0.0.3", "x<0.0.4,>=0.0.3"),
        ("^0", "x<1,>=0"),
        ("^0.0", "x<0.1,>=0.0"),
        ("^1.2a1", "x<2,>=1.2a1"),
        ("~1.2.3", "x<1.3,>=1.2.3"),
        ("~1", "x<2,>=1"),
        ("~=1.2", "x~=1.2"),
        (">=1 <2, !=1.5", "x!=1.5,<2,>=1"),
        ({"git": "https://git.example.com/x"}, "x"),
        ({"version": "1.2", "extras": ["b", "a"]}, "x[a,b]==1.2"),
        ({"version": "*", "python": "*"}, "x"),
        (
            {"markers": "os_name == 'a' or os_name == 'b'", "python": "~3.11", "platform": "linux"},
            'x; (os_name == "a" or os_name == "b") and (python_version >= "3.11" and python_version < "3.12")'
            ' and sys_platform == "linux"',
        ),
        ({"python": ">=3.11.4,<4"}, 'x; python_full_version >= "3.11.4" and python_version < "4"'),
    ],
)
def test_constraints_of_poetry_are_those_of_pep_440(option: str | dict[str, Any], line: str) -> None:
    assert str(poetry_requirement("x", option)) == line


@pytest.mark.parametrize(
    ("text", "extras", "groups", "message"),
    [
        (
            EXTRAS.replace("Web", "gone"),
            (),
            (),
            "pyproject.toml has no extra 'gone'; it has p-df, web",
        ),
        ("[project]\nname = 'x'\ndependencies = ['x[y]']\n", (), (), "has no extra 'y'; it has none"),
        (
            EXTRAS.replace('["c"]', '"c"'),
            (),
            (),
            "pyproject.toml: project.optional-dependencies.p-df must be a list of strings",
        ),
        (
            EXTRAS.replace('["c"]', '["c", 1]'),
            (),
            (),
            "pyproject.toml: project.optional-dependencies.p-df must be a list of strings",
        ),
        (
            EXTRAS.replace('["c"]', '["-r c"]'),
            (),
            (),
            "line 3: project.dependencies has '-r c', which is not a",
        ),
        (
            POETRY.replace('["b", "C.d"]', '"b"'),
            ("web",),
            (),
            "pyproject.toml: tool.poetry.extras.web must be a list of strings",
        ),
        (
            POETRY.replace("^2", "^x"),
            ("web",),
            (),
            "pyproject.toml: tool.poetry.dependencies.b cannot be read: ",
        ),
        (
            POETRY.replace('"^1.2"', '"^1 || ^2"'),
            (),
            (),
            "tool.poetry.dependencies.a cannot be read: '^1 || ^2' has alternatives; write one range",
        ),
        (
            POETRY.replace('e = "*"', "e = 1"),
            (),
            ("l-lm",),
            "pyproject.toml: tool.poetry.group.L_lm.dependencies.e cannot be read: ",
        ),
        (
            GROUPS.replace('"more"', '"gone"'),
            (),
            ("te-st",),
            "pyproject.toml line 5: dependency-groups.Te-st cannot be read: ",
        ),
    ],
)
def test_what_cannot_be_read_is_named(
    text: str, extras: tuple[str, ...], groups: tuple[str, ...], message: str
) -> None:
    with pytest.raises(PlanError) as raised:
        table(text).requirements(extras, groups)
    assert raised.value.reason == "ConfigInvalid" and raised.value.hint
    assert message in raised.value.message


def test_a_list_of_dependencies_is_shown_where_there_is_none() -> None:
    with pytest.raises(PlanError) as raised:
        table("[project]\nname = 'x'\ndependencies = 'a'\n").requirements()
    assert raised.value.message == "pyproject.toml line 3: project.dependencies must be a list of strings"
    assert raised.value.hint == 'For example: dependencies = ["langgraph>=1"].'


@pytest.mark.parametrize("value", ["true", "5", "'dependencies'", "[['dependencies']]"])
def test_dynamic_is_a_list_of_names(value: str) -> None:
    with pytest.raises(PlanError) as raised:
        table(f"[project]\nname = 'x'\ndynamic = {value}\n").undeclared_reason()
    assert raised.value.message == "pyproject.toml line 3: project.dynamic must be a list of strings"
    assert raised.value.hint == 'For example: dynamic = ["version"].'


def test_at_most_fifty_nested_extras_are_read() -> None:
    def nested(count: int) -> ProjectTable:
        lines = "".join(f"e{at} = ['x[e{at + 1}]']\n" for at in range(1, count))
        head = "[project]\nname = 'x'\ndependencies = ['x[e1]']\n[project.optional-dependencies]\n"
        return table(f"{head}{lines}e{count} = ['last']\n")

    assert [str(each) for each in nested(50).requirements()] == ["last"]
    with pytest.raises(PlanError, match=r"pyproject\.toml has too many extras"):
        nested(51).requirements()


@pytest.mark.parametrize(
    ("text", "has"),
    [(EXTRAS, (True, False)), (POETRY, (True, True)), (GROUPS, (False, False)), ("", (False, False))],
)
def test_extras_and_groups_are_found_by_any_spelling(text: str, has: tuple[bool, bool]) -> None:
    found = table(text)
    assert (found.has_extra("WEB"), found.has_group("L.LM")) == has


def test_default_groups_are_those_that_poetry_installs() -> None:
    assert table(POETRY + "[tool.poetry.group.bare]\n").default_groups() == {"L_lm": ["e"], "bare": []}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[project]\nname = 'A_b'\n[tool.poetry]\nname = 'c'\n", "a-b"),
        ("[project]\nversion = '1'\n[tool.poetry]\nname = 'C_d'\n", "c-d"),
        ("[project]\nname = 1\n[tool.poetry]\nname = 2\n", ""),
        ("", ""),
    ],
)
def test_the_name_of_a_project_is_that_of_its_first_table(text: str, name: str) -> None:
    assert table(text).name == name


def test_dependencies_that_come_from_elsewhere_are_redirected() -> None:
    text = """\
[tool.poetry.dependencies]
A_b = {path = "a"}
c = "*"
d = {version = "*", extras = ["x"]}
e = [{git = "https://git.example.com/e"}]
[tool.poetry.group.one.dependencies]
f = [{url = "https://x/f"}, "^1"]
g = {source = "ours"}
[tool.uv.sources]
g = {workspace = true}
H_i = [{index = "one"}, {index = "two"}]
"""
    path = "libs/x/pyproject.toml"

    def redirect(line: int, name: str, values: dict[str, Any]) -> Redirect:
        return Redirect(f"{path} line {line}: {name}", "libs/x", values)

    assert table(text, path).redirects == {
        "a-b": redirect(2, "tool.poetry.dependencies.A_b", {"path": "a"}),
        "e": redirect(5, "tool.poetry.dependencies.e", {"git": "https://git.example.com/e"}),
        "f": redirect(7, "tool.poetry.group.one.dependencies.f", {"several": [{"url": "https://x/f"}, "^1"]}),
        "g": redirect(10, "tool.uv.sources.g", {"workspace": True}),
        "h-i": redirect(11, "tool.uv.sources.H_i", {"several": [{"index": "one"}, {"index": "two"}]}),
    }
    with pytest.raises(PlanError, match=r"line 10: tool\.uv\.sources\.g must be a table"):
        table(text.replace("{workspace = true}", "1"), path)


def test_the_public_index_by_the_name_of_poetry_is_no_redirect() -> None:
    text = (
        "[tool.poetry.dependencies]\na = {version = '^1', source = 'PyPI'}\n"
        "b = {version = '^1', source = 'pypi', git = 'https://x/b'}\nc = {version = '1', source = 'pypi2'}\n"
    )
    assert [*table(text).redirects] == ["b", "c"]


@pytest.mark.parametrize(
    ("text", "files"),
    [
        (SETUPTOOLS + "dependencies = {file = ' a.txt, ../b.txt'}\n", ("libs/a.txt", "b.txt")),
        (SETUPTOOLS + "dependencies = {file = ['a.txt']}\n", ("libs/a.txt",)),
        (SETUPTOOLS + "dependencies = {file = ['a.txt', 1]}\n", ()),
        (SETUPTOOLS + "dependencies = {file = 1}\n", ()),
        (SETUPTOOLS + "dependencies = {attr = 'x.y'}\n", ()),
        (SETUPTOOLS, ()),
        (SETUPTOOLS.replace("dynamic = ['dependencies']", "dependencies = []")
         + "dependencies = {file = 'a.txt'}\n", ()),
    ],
)  # fmt: skip
def test_dynamic_dependencies_are_in_files_beside_the_project(text: str, files: tuple[str, ...]) -> None:
    assert table(text, "libs/pyproject.toml").dynamic_files() == files


def test_names_of_extras_and_groups_are_chosen_in_one_project_of_several() -> None:
    files = {"one/pyproject.toml": EXTRAS.encode(), "two/pyproject.toml": POETRY.encode()}
    crew = Configuration("crew.toml", directories=("one", "two"), extras=("web", "p-df"), groups=("l-lm",))
    assert read_dependencies(files, crew).lines == (
        *("a", "b>=2, <3", "c", "a<2,>=1.2", "e", "b<3,>=2"),
        *('c_d<2; python_version < "3.12"', "c_d>=2"),
    )
    with pytest.raises(PlanError) as raised:
        read_dependencies(files, Configuration("crew.toml", directories=("one",), groups=("b", "a")))
    assert "crew.toml: build names 'a', no extra or group" in raised.value.message
    with pytest.raises(PlanError, match="build names 'web', no extra or group"):
        read_dependencies({"requirements.txt": b"a\n"}, Configuration("crew.toml", extras=("web",)))
