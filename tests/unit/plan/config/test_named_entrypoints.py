"""A deployment holds all crews or graphs of its configuration by name; the first is the default."""

import json

import pytest

from plan.errors import PlanError
from plan.make import Planned, make_plan

CODE = {"a.py": "graph = build()\n", "b.py": "graph = build()\nother = build()\n"}


def planned(files: dict[str, str], crew: str | None = None) -> Planned:
    return make_plan({path: text.encode() for path, text in files.items()}, crew, ["3.11", "3.12"])


def langgraph(graphs: dict[str, object], **values: object) -> dict[str, str]:
    return {**CODE, "langgraph.json": json.dumps({"graphs": graphs, **values})}


def llamadeploy(text: str) -> dict[str, str]:
    return {**CODE, "pyproject.toml": f"[project]\nname = 'x'\n{text}"}


LLAMA_WORKFLOWS = "[tool.llamadeploy.workflows]\none-two = 'a:graph'\nthree = 'b:other'\n"


def crew_toml(text: str) -> dict[str, str]:
    return {**CODE, "main.py": "def kickoff(): ...\n", "crew.toml": text}


@pytest.mark.parametrize(
    ("files", "crew", "default", "named"),
    [
        (langgraph({"one": "./a.py:graph"}), None, "a:graph", {"one": "a:graph"}),
        (
            langgraph({"one": "./a.py:graph", "two": {"path": "./b.py:other"}}),
            None,
            "a:graph",
            {"one": "a:graph", "two": "b:other"},
        ),
        (
            langgraph({"one": "./a.py:graph", "two": "./b.py:other"}),
            "two",
            "b:other",
            {"two": "b:other", "one": "a:graph"},
        ),
        (
            crew_toml("[deployments.one]\nentrypoint = 'a:graph'\n[deployments.two]\n"),
            None,
            "a:graph",
            {"one": "a:graph", "two": "main:kickoff"},
        ),
        (
            crew_toml("[deployments.one]\nentrypoint = 'a:graph'\n[deployments.two]\nentrypoint = 'b.py'\n"),
            "two",
            "b.py",
            {"two": "b.py", "one": "a:graph"},
        ),
        (crew_toml("[deployment]\nentrypoint = 'a:graph'\n"), None, "a:graph", {}),
        (llamadeploy(LLAMA_WORKFLOWS), None, "a:graph", {"one-two": "a:graph", "three": "b:other"}),
        (llamadeploy(LLAMA_WORKFLOWS), "three", "b:other", {"three": "b:other", "one-two": "a:graph"}),
        ({"crew.py": "@CrewBase\nclass Tides: ...\n"}, None, "crew:Tides", {}),
    ],
)
def test_all_named_entrypoints_are_kept(
    files: dict[str, str], crew: str | None, default: str, named: dict[str, str]
) -> None:
    files = {**files, "b.py": "graph = build()\nother = build()\nprint(graph)\n"}
    plan = planned(files, crew).plan
    assert (plan.entrypoint, plan.entrypoints) == (default, named)
    assert plan.as_status().get("entrypoints", {}) == named


@pytest.mark.parametrize(
    ("files", "named", "note"),
    [
        (
            langgraph({"web": "./web.ts:graph", "one": "./a.py:graph"}),
            {"one": "a:graph"},
            "a graph is left out: langgraph.json: graphs.web is ./web.ts, which is not Python",
        ),
        (
            langgraph({"one": "./a.py:graph", "gone": "./gone.py:graph"}),
            {"one": "a:graph"},
            "gone is left out: gone.py or src/gone.py not found",
        ),
        (
            langgraph({"one": "./a.py:graph", "two.five": "./b.py:other"}),
            {"one": "a:graph"},
            "two.five is left out: a run cannot name it; use letters, digits, _ and -; "
            "to run it, set spec.source.git.crew to b:other or deploy with --crew b:other",
        ),
        (
            langgraph({"x" * 63: "./a.py:graph", **{f"{n}{'y' * 60}": "./b.py:graph" for n in range(20)}}),
            {"x" * 63: "a:graph", **{f"{n}{'y' * 60}": "b:graph" for n in range(12)}},
            f"12{'y' * 60} is left out: all names and entrypoints together have more than 1024 bytes",
        ),
        (
            crew_toml(
                "[deployments.one]\nentrypoint = 'a:graph'\n"
                "[deployments.two]\nentrypoint = 'b:other'\npython = '3.12'\n"
            ),
            {"one": "a:graph"},
            "crew.toml line 5: deployments.two.python differs from that of one: two is left out",
        ),
        (
            {
                **langgraph({"one": "./a.py:graph", "two": "lib.two:graph"}),
                "libs/pyproject.toml": "[project]\nname = 'lib'\n",
                "libs/src/lib/two.py": "graph = build()\n",
            },
            {"one": "a:graph"},
            "two is left out: the project in libs is not installed for a:graph; "
            "to run it, set spec.source.git.crew to lib.two:graph or deploy with --crew lib.two:graph",
        ),
    ],
)
def test_unsupported_entrypoint_is_noted(files: dict[str, str], named: dict[str, str], note: str) -> None:
    result = planned(files)
    assert result.plan.entrypoints == named
    assert any(line.startswith(note) for line in result.notes), result.notes


@pytest.mark.parametrize(
    ("files", "crew", "reason"),
    [
        (langgraph({"one": "./gone.py:graph", "two": "./a.py:graph"}), None, "EntrypointNotFound"),
        (langgraph({"web": "./web.ts:graph", "one": "./a.py:graph"}), "web", "UnsupportedFramework"),
        (langgraph({"one": "./a.py:graph"}), "two", "ConfigInvalid"),
        (
            crew_toml("[deployments.one]\n[deployments.two]\nframework = 'cobol'\n"),
            "one",
            "UnsupportedFramework",
        ),
        (crew_toml("[deployments.one]\n[deployments.two]\npyhton = '3'\n"), "one", "ConfigInvalid"),
    ],
)
def test_the_default_and_our_own_keys_must_be_right(
    files: dict[str, str], crew: str | None, reason: str
) -> None:
    with pytest.raises(PlanError) as raised:
        planned(files, crew)
    assert raised.value.reason == reason


COLLECTION = {"one.py": "from agents import Agent\nagent = Agent()\n", "two.py": "print('a script')\n"}


@pytest.mark.parametrize(
    ("files", "crew", "named"),
    [
        (COLLECTION, "one:agent", {}),
        (COLLECTION, "two.py", {}),
        ({**CODE, "pyproject.toml": "[tool.crewai]\ntype = 'flow'\n"}, "b:other", {}),
        (langgraph({"one": "./a.py:graph"}), "b:other", {"one": "a:graph"}),
        (langgraph({"gone": "./gone.py:graph"}), "b:other", {}),
        (
            crew_toml("[deployments.one]\nentrypoint = 'a:graph'\n[deployments.two]\n"),
            "b:other",
            {"one": "a:graph", "two": "main:kickoff"},
        ),
        (crew_toml("[deployments.one]\n"), "b:other", {"one": "main:kickoff"}),
        (crew_toml("[deployment]\nentrypoint = 'gone:graph'\n"), "b:other", {}),
    ],
)
def test_a_requested_entrypoint_takes_the_place_of_the_configured_one(
    files: dict[str, str], crew: str, named: dict[str, str]
) -> None:
    plan = planned(files, crew).plan
    assert (plan.entrypoint, plan.entrypoints) == (crew, named)


def test_settings_of_the_configured_entrypoint_do_not_apply_to_another() -> None:
    files = crew_toml(
        "[deployment]\nframework = 'crewai'\nsmoke = {}\n[run]\ntimeout = '5m'\n"
        "[run.inputs]\ntopic = 'string'\n"
    )
    plan = planned(files, "b:other").plan
    assert (plan.framework, plan.smoke, plan.inputs_declared, plan.timeout) == ("python", None, False, "5m")


@pytest.mark.parametrize("crew", ["gone:graph", "gone.py", "b:gone"])
def test_a_requested_entrypoint_must_exist(crew: str) -> None:
    with pytest.raises(PlanError, match=r"the requested crew") as raised:
        planned(COLLECTION if crew != "b:gone" else CODE, crew)
    assert raised.value.reason == "EntrypointNotFound"


def test_other_keys_of_llamadeploy_are_noted() -> None:
    more = (
        "[tool.llamadeploy]\nname = 'tides'\nenv_files = ['.env']\n[tool.llamadeploy.ui]\ndirectory = 'ui'\n"
    )
    notes = planned(llamadeploy(more + LLAMA_WORKFLOWS)).notes
    assert notes[0] == "pyproject.toml: ignored keys: tool.llamadeploy.env_files, tool.llamadeploy.ui"


@pytest.mark.parametrize(
    ("text", "crew", "message"),
    [
        (LLAMA_WORKFLOWS, "four", "[tool.llamadeploy.workflows] has no four; it has one-two, three"),
        ("[tool.llamadeploy.workflows]\n", None, "has no workflow; it has none"),
        ("[tool.llamadeploy.workflows]\na = 1\n", None, "line 4: tool.llamadeploy.workflows.a"),
    ],
)
def test_a_wrong_workflow_of_llamadeploy_is_refused(text: str, crew: str | None, message: str) -> None:
    with pytest.raises(PlanError) as raised:
        planned(llamadeploy(text), crew)
    assert raised.value.reason == "ConfigInvalid" and message in raised.value.message
