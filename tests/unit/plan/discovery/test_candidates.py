"""What a scan of a source finds: objects by rank, scripts, servers, and functions that build."""

from dataclasses import replace

import pytest

from plan.discovery.candidates import ALL_KINDS, EntrypointCandidate, SourceScan, scan_source

NOTHING = SourceScan((), (), (), (), (), (), (), (), ())
CREW = "@CrewBase\nclass A: ...\n"
FLOW = "class F(Flow): ...\n"
GRAPH = "graph = b.compile()\n"
AGENT = "from agents import Agent\nagent = Agent()\n"
WORKFLOW = "from workflows import Workflow\nclass W(Workflow):\n    @step\n    def look(self): ...\n"
MAKES_CREW = "class C:\n    def crew(self):\n        return Crew()\n"
BUILDS_GRAPH = "def build_graph():\n    return b.compile()\n"
MAKES_AGENT = "from agents import Agent\ndef make():\n    return Agent()\n"
GUARD = "if __name__ == '__main__':\n    main()\n"
SCRIPT = "import openai\n" + GUARD
ALL = CREW + FLOW + GRAPH + WORKFLOW + MAKES_CREW + BUILDS_GRAPH + MAKES_AGENT


def scan(files: dict[str, str], kinds: tuple[str, ...] = ALL_KINDS, python: str = "3.11") -> SourceScan:
    return scan_source({path: text.encode() for path, text in files.items()}, python, kinds)


@pytest.mark.parametrize(
    ("path", "code", "rank"),
    [
        ("main.py", FLOW, 0),
        ("src/tides/flow.py", FLOW, 0),
        ("tides/crew.py", CREW, 1),
        ("src/main.py", CREW, 1),
        ("src/a/b/graph.py", GRAPH, 2),
        ("a/workflow.py", GRAPH, 2),
        ("a/b/workflow.py", WORKFLOW + "app = W()\n", 3),
        ("team.py", AGENT, 4),
        ("a/b/app.py", AGENT, 4),
        ("a/b/main.py", FLOW, 5),
        ("flow.py", CREW, 6),
        ("a/b/c/graph.py", GRAPH, 7),
        ("graph.py", WORKFLOW + "app = W()\n", 8),
        ("graph.py", AGENT, 9),
    ],
)
def test_object_at_a_usual_place_of_its_kind_has_a_lower_rank(path: str, code: str, rank: int) -> None:
    (found,) = scan({path: code}).candidates
    assert (found.rank, found.path) == (rank, path)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"flow.yaml": "x: crewai.flow/v1"}, [(0, "flow.yaml")]),
        (
            {"src/a/flow.yml": "crewai.flow/v1", "flow.yml": "crewai.flow/v1"},
            [(0, "flow.yml"), (0, "src/a/flow.yml")],
        ),
        (
            {"crew.json": '{"agents": []}', "a/crew.jsonc": '"agents"'},
            [(1, "a/crew.jsonc"), (1, "crew.json")],
        ),
        ({"crew.json": '{"ship": 1}', "flow.yaml": '"agents"', "a/b/crew.json": '"agents"'}, []),
    ],
)
def test_declared_crews_and_flows_are_candidates(files: dict[str, str], found: list[tuple[int, str]]) -> None:
    expected = tuple(EntrypointCandidate(rank, path, path) for rank, path in found)
    assert scan(files) == replace(NOTHING, candidates=expected)
    assert scan(files, ("graph",)) == NOTHING


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("crew", replace(NOTHING, crews=("a:C",), candidates=(EntrypointCandidate(6, "a.py", "a:A"),))),
        ("flow", replace(NOTHING, candidates=(EntrypointCandidate(5, "a.py", "a:F"),))),
        (
            "graph",
            replace(
                NOTHING,
                builders=("a:build_graph",),
                candidates=(EntrypointCandidate(7, "a.py", "a:graph"),),
            ),
        ),
        ("workflow", replace(NOTHING, workflows=("a:W",))),
        ("agent", replace(NOTHING, agent_builders=("a:make",))),
    ],
)
def test_only_objects_of_the_kind_are_found(kind: str, expected: SourceScan) -> None:
    assert scan({"a.py": ALL}, (kind,)) == expected
    assert scan({"a-b/a.py": ALL}, (kind,)) == NOTHING


@pytest.mark.parametrize(
    ("path", "entrypoint"),
    [
        ("a.py", "a:A"),
        ("src/a/b.py", "a.b:A"),
        ("a/__init__.py", "a:A"),
        ("lib/src/a/b.py", "lib.src.a.b:A"),
        ("proj/src/a/b.py", "a.b:A"),
        ("proj/a.py", "a:A"),
        ("proj/x/y/a.py", "x.y.a:A"),
    ],
)
def test_module_is_named_from_its_root_or_project(path: str, entrypoint: str) -> None:
    files = {path: CREW, "proj/pyproject.toml": "[project]\nname = 'x'\n"}
    assert [found.entrypoint for found in scan(files).candidates] == [entrypoint]


def test_project_in_src_is_the_root_of_its_modules() -> None:
    leaving = "from . import state\n" + CREW
    assert [found.entrypoint for found in scan({"src/a.py": leaving}).candidates] == ["src.a:A"]
    project = {"p/src/a.py": leaving, "p/pyproject.toml": "[project]\nname = 'x'\n"}
    assert [found.entrypoint for found in scan(project).candidates] == ["a:A"]


@pytest.mark.parametrize(
    ("files", "scripts", "usual", "of_agents"),
    [
        ({"a.py": SCRIPT}, ["a.py"], [], ["a.py"]),
        ({"src/a.py": SCRIPT}, ["src/a.py"], [], ["src/a.py"]),
        ({"a.py": GUARD}, [], [], []),
        ({"a/b.py": SCRIPT}, [], [], []),
        ({"a/b.py": SCRIPT + "Crew()"}, ["a/b.py"], [], []),
        ({"a.py": "import openai\nprint(1)"}, ["a.py"], [], ["a.py"]),
        ({"a.py": "import openai\nx = input()"}, ["a.py"], [], ["a.py"]),
        ({"a.py": "print(Crew())"}, [], [], []),
        ({"a.py": "Crew().kickoff()"}, ["a.py"], [], []),
        ({"main.py": GUARD}, ["main.py"], ["main.py"], []),
        (
            {
                "app.py": GUARD,
                "a/run.py": GUARD,
                "src/main.py": GUARD,
                "b/main.py": GUARD,
                "a/b/main.py": GUARD,
            },
            ["b/main.py", "src/main.py", "app.py", "a/run.py"],
            ["b/main.py", "src/main.py"],
            [],
        ),
        (
            {"main.py": GUARD, "a/main.py": GUARD, "z.py": SCRIPT, "a/b/main.py": "Crew().kickoff()"},
            ["main.py", "a/main.py", "a/b/main.py", "z.py"],
            ["main.py"],
            ["z.py"],
        ),
        ({"a.py": "from crewai import Crew\nimport uvicorn\n" + GUARD}, [], [], ["a.py"]),
        ({"app.py": GUARD + "def f(x: FastAPI): ..."}, ["app.py"], ["app.py"], []),
    ],
)
def test_scripts_the_most_usual_first(
    files: dict[str, str], scripts: list[str], usual: list[str], of_agents: list[str]
) -> None:
    found = scan(files)
    assert [list(each) for each in (found.scripts, found.usual_scripts, found.agent_scripts)] == [
        scripts,
        usual,
        of_agents,
    ]


@pytest.mark.parametrize(
    ("files", "servers"),
    [
        ({"a/b/c.py": "import fastapi\napp = FastAPI()"}, ["a/b/c.py"]),
        ({"b.py": "import streamlit", "a.py": "import chainlit"}, ["a.py", "b.py"]),
        ({"a.py": "import fastapi"}, []),
        ({"a.py": "app = Flask()"}, []),
        ({"main.py": "import django\n" + GUARD}, ["main.py"]),
        ({"a.py": "# flask\nprint()"}, []),
    ],
)
def test_servers_are_found_at_every_place(files: dict[str, str], servers: list[str]) -> None:
    assert list(scan(files).servers) == servers


@pytest.mark.parametrize(
    "path",
    ["tests/a.py", "x/docs/a.py", "test_a.py", "x/test_a.py", "a_test.py", "x/conftest.py", "a.pyc", "a.txt"],
)
def test_tests_and_other_files_are_not_read(path: str) -> None:
    assert scan({path: ALL}) == NOTHING


def test_module_that_runs_on_import_has_scripts_but_no_objects() -> None:
    assert scan({"a.py": ALL + "graph.invoke({})\n", "b.py": WORKFLOW}) == replace(
        NOTHING, scripts=("a.py",), agent_scripts=("a.py",), workflows=("b:W",)
    )


def test_module_that_cannot_be_read_does_not_end_the_scan() -> None:
    files = {"a.py": CREW + "def broken(:", "b.py": CREW + "x = <syntax of a later Python>\n", "c.py": CREW}
    assert [found.path for found in scan(files).candidates] == ["c.py"]
    assert [found.path for found in scan(files, python="3.99").candidates] == ["a.py", "b.py", "c.py"]


def test_four_hundred_modules_are_read_the_least_deep_first() -> None:
    files = {f"m{number:03}.py": "" for number in range(399)}
    assert len(scan({**files, "z.py": CREW, "a/b.py": CREW}).candidates) == 1
    assert scan({**files, "z.py": CREW, "a/b.py": CREW}).candidates[0].path == "z.py"
    assert scan({**files, "z.py": "", "zz.py": CREW}).candidates == ()
