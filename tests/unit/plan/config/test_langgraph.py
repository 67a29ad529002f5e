"""langgraph.json: what is honoured, and what is refused with the next step."""

import json

import pytest

from plan.config.langgraph import read_langgraph
from plan.config.langgraph_keys import read_keys
from plan.errors import PlanError

EXAMPLE = 'For example: "./agent/graph.py:graph".'
ONLY = "Only Python crews can be built; frameworks are crewai, langgraph, python."
KIND = 'Supported is {"kind": "uv", "root": ".", "package": "NAME"}.'
GRAPHS = 'For example: {"agent": "./agent.py:graph"}.'
LISTED = 'For example: "dependencies": ["."].'
LINES = 'For example: ["RUN apt-get update"].'
NAMES = "Use letters, digits, _ and - in the names of that file and its directories."
ENV = "env must be an object, a list of names, or the name of a file"
INSIDE = "Use a path below the file's directory."


def files_of(text: str) -> dict[str, bytes]:
    project = b"[project]\nname = 'x'\n"
    return {
        "langgraph.json": text.encode(),
        "a/pyproject.toml": project,
        "a/b/pyproject.toml": project,
        "my/pyproject.toml": b"[project]\nname = 'my_Agent'\n",
        "odd/pyproject.toml": b"[project]\nname = 3\n",
        "pyproject.toml": b"[project]\nname = 'root'\n",
    }


def langgraph(target: object = "a:graph", **values: object) -> str:
    return json.dumps({"graphs": {"x": target}, **values})


@pytest.mark.parametrize(
    ("target", "dependencies", "entrypoint"),
    [
        ("pkg.agent:graph", [], "pkg.agent:graph"),
        ("./agent.py:make.graph", [], "agent:make.graph"),
        ("agent.py:graph", [], "agent:graph"),
        ({"path": ".\\src\\deep\\agent.py:graph"}, [], "deep.agent:graph"),
        ("./deep/__init__.py:graph", [], "deep:graph"),
        ("./01-a/b_2.py:graph", [], "01-a.b_2:graph"),
        ("./a/src/c.py:graph", [], "a.src.c:graph"),
        ("./a/src/c.py:graph", ["./a"], "c:graph"),
        ("./a/b/c.py:graph", ["./a", "./a/b"], "c:graph"),
        ("./a/b/c.py:graph", ["./a/b", "./a"], "c:graph"),
        ("./ab/c.py:graph", ["./a"], "ab.c:graph"),
        ("./c/d.py:graph", ["./c", "."], "c.d:graph"),
    ],
)
def test_path_of_a_graph_becomes_a_module(target: object, dependencies: list[str], entrypoint: str) -> None:
    files = files_of(langgraph(target, dependencies=dependencies))
    assert read_langgraph(files, None).entrypoint == entrypoint


@pytest.mark.parametrize(
    ("source", "directories"),
    [
        (None, ()),
        ({}, ()),
        ({"kind": "uv", "root": "."}, ()),
        ({"kind": "uv", "package": "x"}, ("a",)),
        ({"kind": "uv", "package": "root"}, ("",)),
        ({"kind": "uv", "package": "My-agent"}, ("my",)),
    ],
)
def test_workspace_member_of_source_is_the_least_deep(source: object, directories: tuple[str, ...]) -> None:
    assert read_langgraph(files_of(langgraph(source=source)), None).directories == directories


@pytest.mark.parametrize(
    ("dependencies", "directories", "requires"),
    [
        (["."], ("",), ()),
        (["./", "../shared", ".\\lib", "rich>=1"], ("", "../shared", "lib"), ("rich>=1",)),
    ],
)
def test_dependencies_are_directories_or_packages(
    dependencies: list[str], directories: tuple[str, ...], requires: tuple[str, ...]
) -> None:
    found = read_langgraph(files_of(langgraph(dependencies=dependencies)), None)
    assert (found.directories, found.requires) == (directories, requires)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[" * 99999, "the JSON is nested too deeply", "Reduce the nesting."),
        ("9" * 5000, "an integer has more than 4,300 digits", "Write it as a string."),
        ("[]", "the file must contain a JSON object", 'It needs at least "graphs".'),
        *((text, "graphs must be a non-empty object", GRAPHS)
          for text in ("{}", '{"graphs": {}}', '{"graphs": ["a"]}')),
        (langgraph(python_version=3.11), "python_version must be a string",
         'For example: "python_version": "3.11".'),
        *((langgraph(dependencies=wrong), "dependencies must be a list of strings", LISTED)
          for wrong in (".", [1], [""])),
        (langgraph(dependencies=["/a"]), "'/a' leaves the source",
         "Use a path relative to this file."),
        *((langgraph(env=wrong), f"{ENV}", 'For example: ".env".') for wrong in (3, ["A", 1])),
        (langgraph(env=["A B"]), "env has 'A B', which is not a valid variable name",
         "Use A-Z, 0-9 and _."),
        (langgraph(dockerfile_lines="RUN true"), "dockerfile_lines must be a list of strings", LINES),
        (langgraph(dockerfile_lines=["RUN a", 1]), "dockerfile_lines must be a list of strings", LINES),
        (langgraph(dockerfile_lines=["COPY a b"]),
         "dockerfile_lines has COPY; supported are RUN, ENV, ARG, LABEL, WORKDIR, SHELL",
         "Remove that line; the source is in /app when the crew runs, not while its image is built."),
        *((langgraph(source=wrong), "source is not supported", KIND)
          for wrong in ("x", {"kind": "pip"})),
        (langgraph(source={"kind": "uv", "package": "gone"}),
         "source.package is 'gone', which no pyproject.toml of the source names", "Correct it."),
        *((langgraph(wrong), "graphs.x must be a string path:object", EXAMPLE)
          for wrong in (3, "a.py", {"file": "a:b"})),
        *((langgraph(wrong), f"graphs.x must name a Python file, not {path!r}", EXAMPLE)
          for wrong, path in (("./a.rb:b", "./a.rb"), (":b", ""))),
        *((langgraph(wrong), f"{path!r} leaves the source", INSIDE)
          for wrong, path in (("../a.py:b", "../a.py"), ("/a.py:b", "/a.py"))),
        (langgraph("C:\\a.py:b"), "graphs.x is in C:/a.py, which cannot be imported", NAMES),
        (langgraph("./my.lib/a.py:b"), "graphs.x is in ./my.lib/a.py, which cannot be imported", NAMES),
        (langgraph(pip_config_file="x"), "pip_config_file configures pip, which this build configures itself",
         "Remove it; for a private package index, set the Project's build.secretRef."),
    ],
)  # fmt: skip
def test_value_that_cannot_be_honoured_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        read_langgraph(files_of(text), None)
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "ConfigInvalid",
        f"langgraph.json: {message}",
        hint,
    )


def test_syntax_error_has_the_line() -> None:
    with pytest.raises(PlanError, match=r"ConfigInvalid: langgraph\.json line 2: not valid JSON: ") as raised:
        read_langgraph(files_of("{\n,"), None)
    assert raised.value.hint == "Correct langgraph.json at that line."


@pytest.mark.parametrize("suffix", ["js", "ts", "mjs", "mts", "cjs", "tsx"])
def test_graph_in_javascript_is_refused_where_it_is_asked_for(suffix: str) -> None:
    web = f"./web.{suffix}:graph"
    files = files_of(json.dumps({"graphs": {"web": web, "one": "a:graph", "more": "./b.c/d.py:graph"}}))
    for asked, text in (("web", None), (None, langgraph(web))):
        with pytest.raises(PlanError) as raised:
            read_langgraph(files if text is None else files_of(text), asked)
        assert (raised.value.reason, raised.value.hint) == ("UnsupportedFramework", ONLY)
        assert f"is ./web.{suffix}, which is not Python" in raised.value.message
    assert read_langgraph(files, None).notes == (
        f"a graph is left out: langgraph.json: graphs.web is ./web.{suffix}, which is not Python",
        "a graph is left out: langgraph.json: graphs.more is in ./b.c/d.py, which cannot be imported",
    )


@pytest.mark.parametrize(
    ("values", "notes"),
    [
        ({"graphs": {}, "$schema": "x", "env": ".env"}, ()),
        ({"node_version": "20"}, ("a.json: ignored keys: node_version",)),
        ({"image_distro": "wolfi"}, ("a.json: ignored keys: image_distro",)),
        (
            {"image_distro": "wolfi", "dockerfile_lines": ["RUN pip install apkutils"]},
            ("a.json: ignored keys: image_distro",),
        ),
        (
            {"image_distro": "bookworm", "dockerfile_lines": ["RUN apk add git"]},
            ("a.json: ignored keys: image_distro",),
        ),
        ({"store": {}, "pip_config_file": "", "base_image": None}, ()),
        ({"store": {"a": 1}, "http": 1}, ("a.json: ignored keys: store, http",)),
        ({"base_image": "langchain/langgraph-api:3.11"}, ("a.json: ignored keys: base_image",)),
        ({"base_image": "langchain/langgraph-server"}, ("a.json: ignored keys: base_image",)),
    ],
)
def test_keys_without_effect_are_noted(values: dict[str, object], notes: tuple[str, ...]) -> None:
    assert read_keys("a.json", values) == notes


def test_lines_for_the_package_manager_of_another_distribution_are_refused() -> None:
    with pytest.raises(PlanError, match="dockerfile_lines use apk of image_distro wolfi") as raised:
        read_keys("a.json", {"image_distro": "wolfi", "dockerfile_lines": ["ENV A=b", "RUN apk add git"]})
    assert (raised.value.reason, "apt-get" in raised.value.hint) == ("ConfigInvalid", True)


@pytest.mark.parametrize(
    ("key", "value", "message", "hint"),
    [
        ("base_image", "mine/langchain/langgraph-api",
         "names an image; crews are built on the images of this installation",
         "Remove it; the operator can offer another base image (CREWYARD_BASE_IMAGES)."),
        ("pip_config_file", "langchain/langgraph-api", "configures pip, which this build configures itself",
         "Remove it; for a private package index, set the Project's build.secretRef."),
    ],
)  # fmt: skip
def test_key_that_a_crew_could_miss_is_refused(key: str, value: str, message: str, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        read_keys("a.json", {"store": 1, key: value})
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "ConfigInvalid",
        f"a.json: {key} {message}",
        hint,
    )
