"""Each configuration file as a whole: what is read from it, and which parts a requested crew changes."""

import json

import pytest

from plan.config.configuration import Configuration, NamedEntrypoint, read_configuration
from plan.errors import PlanError

OWN = """\
[build]
exclude = ["tests"]
extras = ["pdf"]
groups = ["tools"]
packages = ["ffmpeg"]
dockerfile = "Dockerfile"
[run]
timeout = "1h30m"
env_required = ["B", "A", "B"]
[run.inputs]
topic = "string"
[artifacts]
include = ["*.md", "output/**", "*.md"]
"""
DEPLOYMENT = """\
[deployment]
framework = "crewai"
entrypoint = "pkg.crew:MyCrew"
python = "3.12"
smoke = {timeout = "2m"}
"""
DEPLOYMENTS = """\
[deployments.one]
framework = "crewai"
entrypoint = "a:one"
python = "3.12"
[deployments.two]
python = "3.12"
smoke = {}
[deployments.three]
entrypoint = "a:three"
python = "3.11"
[deployments.four]
entrypoint = "a:four"
"""
DEFAULT = Configuration("the default without a configuration file")
WHOLE = Configuration(
    origin="crew.toml line 16: deployment.entrypoint",
    framework="crewai",
    entrypoint="pkg.crew:MyCrew",
    python="3.12",
    timeout="1h30m",
    env_required=("B", "A"),
    exclude=("tests",),
    artifacts=("*.md", "output/**"),
    python_origin="crew.toml line 17: deployment.python",
    extras=("pdf",),
    groups=("tools",),
    packages=("ffmpeg",),
    dockerfile="Dockerfile",
    dockerfile_origin="crew.toml line 6: build.dockerfile",
    smoke={"timeout": "2m"},
    inputs={"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]},
)
LANGGRAPH = {
    "graphs": {"one": "./src/a.py:graph", "two": {"path": ".\\lib\\src\\b.py:graph"}, "web": "./a.ts:graph"},
    "dependencies": [".", "./lib", ".\\more", "langchain_openai"],
    "python_version": "3.12",
    "env": {"KEY": "", "OTHER": ""},
    "dockerfile_lines": ["RUN true"],
    "source": {"kind": "uv", "root": ".", "package": "deep"},
    "store": {},
    "http": {"app": "x"},
}
PROJECTS = {
    "lib/pyproject.toml": "[project]\nname = 'lib'\n",
    "x/deep/pyproject.toml": "[project]\nname = 'deep'\n",
    "z/pyproject.toml": "[project]\nname = 'deep'\n",
    "pyproject.toml": "[tool.x]\n",
}
ONE = NamedEntrypoint("one", "a:graph", "langgraph.json: graphs.one")
TWO = NamedEntrypoint("two", "b:graph", "langgraph.json: graphs.two")
WHOLE_LANGGRAPH = Configuration(
    origin="langgraph.json: graphs.one",
    framework="langgraph",
    entrypoint="a:graph",
    python="3.12",
    env_required=("KEY", "OTHER"),
    requires=("langchain_openai",),
    directories=("", "lib", "more", "z"),
    python_origin="langgraph.json: python_version",
    python_is_preference=True,
    lock_is_optional=True,
    name="one",
    named=(TWO,),
    notes=(
        "langgraph.json: ignored keys: http",
        "a graph is left out: langgraph.json: graphs.web is ./a.ts, which is not Python",
    ),
    dockerfile_lines=("RUN true",),
)
LLAMA = "[tool.llamadeploy]\nname = 'x'\nui = 1\n[tool.llamadeploy.workflows]\none = 'a:f'\ntwo = 'b:f'\n"
LLAMA_ONE = NamedEntrypoint("one", "a:f", "pyproject.toml line 5: tool.llamadeploy.workflows.one")
LLAMA_TWO = NamedEntrypoint("two", "b:f", "pyproject.toml line 6: tool.llamadeploy.workflows.two")


@pytest.mark.parametrize(
    ("files", "crew", "expected"),
    [
        ({}, None, DEFAULT),
        ({"crew.toml": OWN + DEPLOYMENT}, None, WHOLE),
        (
            {"crew.toml": "[deployment]\nsmoke = {}\n"},
            None,
            Configuration(
                "the default of crew.toml", smoke={}, python_origin="crew.toml: deployment.python"
            ),
        ),
        ({"pyproject.toml": "[project]\nname = 'x'\n"}, None, DEFAULT),
        (
            {"crewship.toml": "[deployments.one]\n[deployments.two]\n"},
            "two",
            Configuration(
                "the default of crewship.toml",
                python_origin="crewship.toml: deployments.two.python",
                name="two",
                named=(NamedEntrypoint("one", "main:kickoff", "the default of crewship.toml"),),
            ),
        ),
        ({"crewship.toml": "[run]\n"}, None, Configuration("the default of crewship.toml")),
        ({"crew.toml": "[run]\n[build]\n"}, None,
         Configuration("the default of crew.toml", dockerfile_origin="crew.toml: build.dockerfile")),
        (
            {"crew.toml": DEPLOYMENTS},
            None,
            Configuration(
                "crew.toml line 3: deployments.one.entrypoint",
                framework="crewai",
                entrypoint="a:one",
                python="3.12",
                python_origin="crew.toml line 4: deployments.one.python",
                name="one",
                named=(
                    NamedEntrypoint("two", "main:kickoff", "the default of crew.toml"),
                    NamedEntrypoint("four", "a:four", "crew.toml line 12: deployments.four.entrypoint"),
                ),
                notes=(
                    "crew.toml line 10: deployments.three.python differs from that of one: three is left out",
                ),
            ),
        ),
        (
            {"crew.toml": DEPLOYMENTS},
            "four",
            Configuration(
                "crew.toml line 12: deployments.four.entrypoint",
                entrypoint="a:four",
                python_origin="crew.toml: deployments.four.python",
                name="four",
                notes=tuple(
                    f"crew.toml line {line}: deployments.{name}.python differs from that of four: "
                    f"{name} is left out"
                    for line, name in ((4, "one"), (6, "two"), (10, "three"))
                ),
            ),
        ),
        (
            {"crewship.toml": "x = 1\n[deployment]\nprofile = 'slim'\ny = 1\n[run]\nz = 1\n[build]\na = 1\n"},
            None,
            Configuration(
                "the default of crewship.toml",
                python_origin="crewship.toml: deployment.python",
                dockerfile_origin="crewship.toml: build.dockerfile",
                notes=("crewship.toml: ignored keys: x, build.a, run.z, deployment.y",),
            ),
        ),
        (
            {"pyproject.toml": "[tool.crewyard.deployment]\nentrypoint = 'a:f'\n[tool.crewai]\n"},
            None,
            Configuration(
                "pyproject.toml line 2: tool.crewyard.deployment.entrypoint",
                entrypoint="a:f",
                python_origin="pyproject.toml: tool.crewyard.deployment.python",
            ),
        ),
        ({"langgraph.json": json.dumps(LANGGRAPH), **PROJECTS}, None, WHOLE_LANGGRAPH),
        (
            {"langgraph.json": '{"graphs": {"one": "a:graph", "two": "b:graph"}, "env": ".env"}'},
            "two",
            Configuration(
                "langgraph.json: graphs.two",
                framework="langgraph",
                entrypoint="b:graph",
                python_origin="langgraph.json: python_version",
                python_is_preference=True,
                lock_is_optional=True,
                name="two",
                named=(ONE,),
            ),
        ),
        (
            {"pyproject.toml": "[tool.crewai]\ntype = 'flow'\nproject_id = 'x'\nversion = 2\n"},
            None,
            Configuration(
                "pyproject.toml: [tool.crewai]",
                framework="crewai",
                kind="flow",
                notes=("pyproject.toml: ignored keys: tool.crewai.version",),
            ),
        ),
        (
            {"pyproject.toml": "[tool.crewai]\ndefinition = 'crew.jsonc'\n"},
            None,
            Configuration(
                "pyproject.toml line 2: tool.crewai.definition",
                framework="crewai",
                entrypoint="crew.jsonc",
                kind="crew",
            ),
        ),
        (
            {"pyproject.toml": LLAMA},
            None,
            Configuration(
                LLAMA_ONE.origin,
                framework="python",
                entrypoint="a:f",
                name="one",
                named=(LLAMA_TWO,),
                notes=("pyproject.toml: ignored keys: tool.llamadeploy.ui",),
            ),
        ),
        (
            {"pyproject.toml": LLAMA.replace("ui = 1\n", "\n")},
            "two",
            Configuration(
                LLAMA_TWO.origin, framework="python", entrypoint="b:f", name="two", named=(LLAMA_ONE,)
            ),
        ),
        ({"pyproject.toml": "[tool.llamadeploy]\n"}, None, DEFAULT),
    ],
)  # fmt: skip
def test_configuration_of_each_file(files: dict[str, str], crew: str | None, expected: Configuration) -> None:
    assert read_configuration({path: text.encode() for path, text in files.items()}, crew) == expected


@pytest.mark.parametrize("crew", ["b:other", "b.py"])
def test_requested_entrypoint_keeps_what_is_not_of_the_configured_one(crew: str) -> None:
    files = {"crew.toml": (OWN + DEPLOYMENT.replace("[deployment]", "[deployments.one]")).encode()}
    found = read_configuration(files, crew)
    assert found == Configuration(
        origin="the requested crew",
        entrypoint=crew,
        python="3.12",
        timeout="1h30m",
        env_required=("B", "A"),
        exclude=("tests",),
        artifacts=("*.md", "output/**"),
        python_origin="crew.toml line 17: deployments.one.python",
        named=(NamedEntrypoint("one", "pkg.crew:MyCrew", "crew.toml line 16: deployments.one.entrypoint"),),
        extras=("pdf",),
        groups=("tools",),
        packages=("ffmpeg",),
        dockerfile="Dockerfile",
        dockerfile_origin="crew.toml line 6: build.dockerfile",
    )


def test_requested_entrypoint_is_not_searched_by_its_kind() -> None:
    files = {"pyproject.toml": b"[tool.crewai]\ntype = 'flow'\n"}
    assert read_configuration(files, "b:other") == Configuration("the requested crew", entrypoint="b:other")


ADD = "Add that table, or omit the crew's name."
CHOOSE = "Set spec.source.git.crew of the Project to one of those, or deploy with --crew NAME."


@pytest.mark.parametrize(
    ("files", "crew", "message", "hint"),
    [
        ({}, "x", "crew 'x' is requested, but there is no configuration file",
         "Add a crew.toml with [deployments.x], or omit the crew's name."),
        ({"x/y/agent.py": "root_agent = 1"}, "x/y/",
         "crew 'x/y/' is requested, but there is no configuration file",
         "x/y has an agent; name it as x.y.agent:root_agent."),
        ({"crew.toml": "[deployment]\n"}, "x", "crew.toml has no [deployments.x]", ADD),
        ({"crew.toml": DEPLOYMENTS}, "x",
         "crew.toml has no [deployments.x]; it has one, two, three, four", CHOOSE),
        ({"crew.toml": "[deployments]"}, None, "crew.toml has no crew in [deployments]; it has none", CHOOSE),
        ({"langgraph.json": json.dumps(LANGGRAPH)}, "x",
         "langgraph.json: graphs has no 'x'; it has one, two, web", CHOOSE),
        ({"pyproject.toml": "[tool.crewai]\ntype = 'crew'\n"}, "x",
         "crew 'x' is requested, but [tool.crewai] supports only one crew",
         "Add a crew.toml with [deployments.x], or omit the crew's name."),
        ({"pyproject.toml": LLAMA}, "x",
         "pyproject.toml: [tool.llamadeploy.workflows] has no x; it has one, two",
         'Name one there, for example tides = "tides.workflow:workflow", or deploy with --crew NAME.'),
        ({"pyproject.toml": "[tool.llamadeploy.workflows]\na = 1\n"}, None,
         "pyproject.toml line 2: tool.llamadeploy.workflows.a must be a non-empty string",
         'For example: a = "tides.workflow:workflow".'),
        ({"pyproject.toml": "[tool.llamadeploy.workflows]\n"}, None,
         "pyproject.toml: [tool.llamadeploy.workflows] has no workflow; it has none",
         'Name one there, for example tides = "tides.workflow:workflow", or deploy with --crew NAME.'),
    ],
)  # fmt: skip
def test_crew_that_cannot_be_chosen_is_answered_with_those_that_exist(
    files: dict[str, str], crew: str | None, message: str, hint: str
) -> None:
    with pytest.raises(PlanError) as raised:
        read_configuration({path: text.encode() for path, text in files.items()}, crew)
    assert (raised.value.reason, raised.value.message, raised.value.hint) == ("ConfigInvalid", message, hint)
