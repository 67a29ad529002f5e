"""Projects in the layouts of the frameworks' tools: entrypoint, Python, dependencies."""

import json

import pytest

from plan.errors import PlanError
from plan.make import Planned, make_plan

OFFERED = ["3.11", "3.12"]

CREWAI = """\
[project]
name = "research"
version = "0.1.0"
requires-python = ">=3.10,<3.14"
dependencies = ["crewai[tools]>=1.15.0,<2.0.0"]
[project.optional-dependencies]
dev = ["pytest"]
[project.scripts]
run_crew = "research.main:run"
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[tool.crewai]
type = "{kind}"
"""
CREW = """\
from crewai.project import CrewBase, crew
@CrewBase
class Research():
    @crew
    def crew(self): ...
"""
FLOW = "from crewai.flow import Flow, start\nclass PoemFlow(Flow[State]):\n    ...\ndef kickoff(): ...\n"


def plan(files: dict[str, str], crew: str | None = None, python_versions: list[str] = OFFERED) -> Planned:
    return make_plan({path: text.encode() for path, text in files.items()}, crew, python_versions)


def crewai(kind: str, **more: str) -> dict[str, str]:
    return {"pyproject.toml": CREWAI.format(kind=kind), **more}


@pytest.mark.parametrize(
    ("files", "entrypoint"),
    [
        (
            crewai(
                "crew",
                **{
                    "src/research/__init__.py": "",
                    "src/research/crew.py": CREW,
                    "src/research/main.py": "from research.crew import Research\ndef run(): ...\n",
                    "src/research/config/agents.yaml": "",
                    "tests/test_crew.py": CREW,
                },
            ),
            "research.crew:Research",
        ),
        (
            crewai("crew", **{"research/crew.py": CREW, "research/examples/old.py": CREW}),
            "research.crew:Research",
        ),
        (crewai("crew", **{"src/research/team/writers.py": CREW}), "research.team.writers:Research"),
        (
            crewai(
                "flow",
                **{
                    "src/poem/main.py": FLOW,
                    "src/poem/crews/poem_crew/poem_crew.py": CREW,
                    "src/poem/tools/custom_tool.py": "class T: ...\n",
                },
            ),
            "poem.main:PoemFlow",
        ),
    ],
)
def test_crewai_projects(files: dict[str, str], entrypoint: str) -> None:
    planned = plan(files)
    assert (planned.plan.framework, planned.plan.entrypoint) == ("crewai", entrypoint)
    assert planned.declaration.lines == ("crewai[tools]>=1.15.0,<2.0.0",)
    assert planned.declaration.projects == ()


def test_two_crews_in_usual_paths() -> None:
    with pytest.raises(PlanError) as raised:
        plan(crewai("crew", **{"src/a/crew.py": CREW, "src/b/crew.py": CREW}))
    assert "a.crew:Research, b.crew:Research" in raised.value.message


def langgraph(**values: object) -> str:
    return json.dumps({"dependencies": ["."], "graphs": {"agent": "./src/agent.py:graph"}, **values})


GRAPH = "graph = build()\n"


@pytest.mark.parametrize(
    ("files", "crew", "entrypoint", "projects", "lines"),
    [
        (
            {"langgraph.json": langgraph(), "src/agent.py": GRAPH, "requirements.txt": "langgraph\n"},
            None,
            "agent:graph",
            (),
            ("langgraph",),
        ),
        (
            {
                "langgraph.json": langgraph(
                    graphs={
                        "a": "./agents/a.py:graph",
                        "b": {"path": "./agents/b.py:graph", "description": "B"},
                    }
                ),
                "agents/a.py": GRAPH,
                "agents/b.py": GRAPH,
            },
            "b",
            "agents.b:graph",
            (),
            (),
        ),
        (
            {
                "langgraph.json": langgraph(
                    dependencies=["langchain_openai", "./my_agent"],
                    graphs={"agent": "./my_agent/agent.py:graph"},
                ),
                "my_agent/__init__.py": "",
                "my_agent/agent.py": GRAPH,
                "my_agent/requirements.txt": "langgraph==1.2\n",
            },
            None,
            "my_agent.agent:graph",
            (),
            ("langgraph==1.2", "langchain_openai"),
        ),
        (
            {
                "langgraph.json": langgraph(
                    dependencies=["./backend"], graphs={"agent": "./backend/src/agent/graph.py:graph"}
                ),
                "backend/pyproject.toml": "[project]\nname = 'agent'\ndependencies = ['langgraph']\n",
                "backend/src/agent/graph.py": GRAPH,
                "requirements.txt": "httpx\n",
            },
            None,
            "agent.graph:graph",
            ("backend",),
            ("httpx", "langgraph"),
        ),
        (
            {"langgraph.json": langgraph(graphs={"agent": "pkg.agent:graph"}), "src/pkg/agent.py": GRAPH},
            None,
            "pkg.agent:graph",
            (),
            (),
        ),
    ],
)
def test_langgraph_projects(
    files: dict[str, str],
    crew: str | None,
    entrypoint: str,
    projects: tuple[str, ...],
    lines: tuple[str, ...],
) -> None:
    planned = plan(files, crew)
    assert (planned.plan.framework, planned.plan.entrypoint) == ("langgraph", entrypoint)
    assert (planned.declaration.projects, planned.declaration.lines) == (projects, lines)


@pytest.mark.parametrize(
    ("env", "required"),
    [(".env", ()), ({}, ()), ({"OPENAI_API_KEY": "x"}, ("OPENAI_API_KEY",)), (["A", "B", "A"], ("A", "B"))],
)
def test_variables_of_langgraph_json(env: object, required: tuple[str, ...]) -> None:
    assert plan({"langgraph.json": langgraph(env=env), "src/agent.py": GRAPH}).plan.env_required == required


def test_a_graph_in_a_file_whose_name_is_not_an_identifier() -> None:
    graphs = {"graphs": {"a": "./01-Graphs/03-Studio.py:graph", "b": "./agents/101/agent.py:graph"}}
    code = b"graph = 1\n"
    files = {
        "langgraph.json": json.dumps(graphs).encode(),
        "01-Graphs/03-Studio.py": code,
        "agents/101/agent.py": code,
    }
    plan = make_plan(files, None, ["3.11"]).plan
    assert plan.entrypoints == {"a": "01-Graphs.03-Studio:graph", "b": "agents.101.agent:graph"}


def test_paths_of_windows_in_langgraph_json() -> None:
    files = {
        "langgraph.json": langgraph(graphs={"agent": ".\\src\\agent.py:graph"}, dependencies=[".\\libs\\x"]),
        "src/agent.py": GRAPH,
        "libs/x/pyproject.toml": "[project]\nname = 'x'\ndependencies = ['rich']\n",
    }
    planned = plan(files)
    assert planned.plan.entrypoint == "agent:graph"
    assert planned.declaration.projects == ("libs/x",)


def test_python_version_of_langgraph_json_is_a_preference() -> None:
    planned = plan({"langgraph.json": langgraph(python_version="3.13"), "src/agent.py": GRAPH})
    assert planned.plan.python == "3.12"
    assert planned.notes[0].startswith(
        "langgraph.json: python_version is '3.13', not offered here: built for"
    )


@pytest.mark.parametrize(
    "member",
    [
        "[project]\nname = 'agent'\nrequires-python = '>=3.12'\n",
        "[build-system]\n[tool.poetry]\nname = 'agent'\n[tool.poetry.dependencies]\npython = '^3.12'\n",
    ],
)
@pytest.mark.parametrize(
    "files",
    [
        {"apps/agent/graph.py": GRAPH},
        {"apps/agent/src/graph.py": GRAPH, "langgraph.json": langgraph(dependencies=["./apps/agent"])},
        {
            "apps/agent/graph.py": GRAPH,
            "pyproject.toml": "[project]\nname = 'x'\nrequires-python = '>=3.11'\n",
        },
    ],
)
def test_the_python_of_the_project_with_the_entrypoint(member: str, files: dict[str, str]) -> None:
    files = {**files, "apps/agent/pyproject.toml": member}
    if "langgraph.json" in files:
        files["langgraph.json"] = langgraph(graphs={"a": "graph:graph"}, dependencies=["./apps/agent"])
    else:
        files["crew.toml"] = "[deployment]\nentrypoint = 'graph:graph'\n"
    assert plan(files).plan.python == "3.12"


def test_extras_of_the_project_itself_are_expanded() -> None:
    table = "[project]\nname = 'mine'\ndependencies = ['a']\n"
    table += "[project.optional-dependencies]\nall = ['mine[one]', 'c']\none = ['b']\n"
    files = {"requirements.txt": "-e .[all]\n", "pyproject.toml": table, "main.py": "def kickoff(): ...\n"}
    assert plan(files).declaration.lines == ("a", "c", "b")
