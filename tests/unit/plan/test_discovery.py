"""An entrypoint that no configuration names is found by reading; several are proposed, none is guessed."""

import pytest

from plan.bindings import parse_module
from plan.errors import PlanError
from plan.make import Planned, make_plan

CREW = "from crewai.project import CrewBase\n@CrewBase\nclass Tides:\n    def crew(self): ...\n"
PLAIN_CREW = (
    "from crewai import Crew\nclass Tides:\n    def {}(self): ...\n    def crew(self):\n"
    "        made = Crew(agents=[])\n        return made\n"
)
FLOW = "from crewai.flow.flow import Flow, start\nclass TideFlow(Flow[State]):\n    ...\n"
GRAPH = "from langgraph.graph import StateGraph\nbuilder = StateGraph(State)\ngraph = builder.compile()\n"
AGENT = "from {} import Agent\nagent = Agent(name='Pilot')\n"
SMOL = "from smolagents import CodeAgent\nagent = CodeAgent(tools=[])\n"
TEAM = "from autogen_agentchat.teams import RoundRobinGroupChat as Team\nteam = Team([])  # GroupChat(\n"
ADK = "from google.adk.agents.llm_agent import Agent\nroot_agent = Agent(name='Pilot')\n"
ADK_APP = ADK + "from google.adk.apps import App\napp = App(name='tides', root_agent=root_agent)\n"
WORKFLOW = (
    "from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step\n"
    "class Tides(Workflow):\n    @step\n    async def look(self, ev: StartEvent) -> StopEvent: ...\n"
)
LLAMA = "from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent\n{}\n"
LLAMA_AGENT, LLAMA_TEAM = "agent = FunctionAgent()", "team = AgentWorkflow(agents=[agent])"
BUILDER = "def build_graph(saver=None):\n    return StateGraph(State).compile(checkpointer=saver)\n"
MAKER = "def make(model=None):\n    {}\nfrom smolagents import CodeAgent\n"
SCRIPT = "def main(): ...\nif __name__ == '__main__':\n    main()\n"
GUARD = "if __name__ == '__main__':\n    main()\n"
AGENT_SCRIPT = "from agents import Agent\nasync def main(): Agent()\n" + GUARD
PROJECT = "[project]\nname = 'tides'\ndependencies = ['{}']\n"
CREWAI = {"pyproject.toml": PROJECT.format("crewai")}
LANGGRAPH = {"pyproject.toml": PROJECT.format("langgraph")}
COMMAND = {"pyproject.toml": PROJECT.format("crewai") + "[project.scripts]\nrun_crew = 'tides.main:run'\n"}
RUN = "def run():\n    ...\n" + SCRIPT
TOOL = "[tool.crewai]\ntype = '{}'\n{}\n"
DECLARED_FLOW = "schema: crewai.flow/v1\nmethods: {}\n"
DECLARED_CREW = '{"agents": [], "tasks": []} // a crew\n'


def planned(files: dict[str, str]) -> Planned:
    return make_plan({path: text.encode() for path, text in files.items()}, None, ["3.11", "3.12"])


def failure(files: dict[str, str]) -> PlanError:
    with pytest.raises(PlanError) as raised:
        planned(files)
    assert raised.value.reason == "EntrypointNotFound"
    return raised.value


@pytest.mark.parametrize(
    ("files", "entrypoint"),
    [
        ({**CREWAI, "src/tides/crew.py": CREW, "src/tides/main.py": SCRIPT}, "tides.crew:Tides"),
        ({**CREWAI, "tides/crew.py": CREW, "tides/__init__.py": ""}, "tides.crew:Tides"),
        ({**CREWAI, "crew.py": CREW, "main.py": SCRIPT}, "crew:Tides"),
        # src is a package here: another module of it is imported relatively, directly or by a neighbour.
        (
            {**LANGGRAPH, "src/flows/tide.py": "from ..state import State\n" + GRAPH, "src/state.py": ""},
            "src.flows.tide:graph",
        ),
        (
            {
                **LANGGRAPH,
                "src/flows/graph.py": "from .nodes import node\n" + GRAPH,
                "src/flows/nodes.py": "from ..state import State\n",
            },
            "src.flows.graph:graph",
        ),
        (
            {**LANGGRAPH, "src/flows/graph.py": "from . import nodes\n" + GRAPH, "src/flows/nodes.py": ""},
            "flows.graph:graph",
        ),
        ({**LANGGRAPH, "src/graph.py": "from .state import State\n" + GRAPH}, "src.graph:graph"),
        ({**CREWAI, "src/tides/teams/writers.py": CREW}, "tides.teams.writers:Tides"),
        (
            {**CREWAI, "src/tides/main.py": FLOW, "src/tides/crews/poem/poem.py": CREW},
            "tides.main:TideFlow",
        ),
        ({**CREWAI, "flow.py": FLOW, "crew.py": CREW}, "flow:TideFlow"),
        ({**CREWAI, "main.py": "from crewai import Crew\ncrew = Crew(agents=[])\n"}, "main:crew"),
        ({**CREWAI, "tests/crew.py": CREW, "src/tides/crew.py": CREW}, "tides.crew:Tides"),
        ({**CREWAI, "crew.jsonc": DECLARED_CREW, "agents/a.jsonc": "{}"}, "crew.jsonc"),
        ({**CREWAI, "src/tides/flow.yaml": DECLARED_FLOW}, "src/tides/flow.yaml"),
        (
            {"pyproject.toml": TOOL.format("crew", 'definition = "crew.jsonc"'), "crew.jsonc": DECLARED_CREW},
            "crew.jsonc",
        ),
        (
            {"pyproject.toml": TOOL.format("flow", 'definition = "flows/a.yaml"'), "flows/a.yaml": "x: 1"},
            "flows/a.yaml",
        ),
        ({"pyproject.toml": TOOL.format("crew", ""), "main.py": FLOW, "crew.py": CREW}, "crew:Tides"),
        ({**LANGGRAPH, "graph.py": GRAPH}, "graph:graph"),
        ({**LANGGRAPH, "src/agent/graph.py": GRAPH}, "agent.graph:graph"),
        ({**LANGGRAPH, "agent.py": "agent = create_react_agent(model, tools)\n"}, "agent:agent"),
        (
            {**LANGGRAPH, "main.py": "def build():\n    return StateGraph(S).compile()\napp = build()\n"},
            "main:app",
        ),
        ({**LANGGRAPH, "app.py": "workflow = StateGraph(S)\napp = workflow.compile()\n"}, "app:app"),
        ({**LANGGRAPH, "app.py": "workflow: StateGraph = StateGraph(S)\n"}, "app:workflow"),
        ({**LANGGRAPH, "graph.py": "graph = b.compile().with_config(recursion_limit=9)\n"}, "graph:graph"),
        (
            {"back/pyproject.toml": PROJECT.format("langgraph"), "back/src/agent/graph.py": GRAPH},
            "agent.graph:graph",
        ),
        ({"crew.toml": "[deployment]\nframework = 'langgraph'", "graph.py": GRAPH, "crew.py": CREW},
         "graph:graph"),
        ({**CREWAI, "crew.py": CREW, "main.py": "def kickoff(inputs): ...\n"}, "main:kickoff"),
        ({**CREWAI, "crew.py": CREW + CREW}, "crew:Tides"),
        ({"hello.py": AGENT.format("pydantic_ai") + SCRIPT}, "hello:agent"),
        (
            {"src/tides/agent.py": AGENT.format("agents"), "src/tides/b.py": AGENT.format("agents")},
            "tides.agent:agent",
        ),
        ({"src/tides/team.py": TEAM}, "tides.team:team"),
        ({"app.py": SMOL}, "app:agent"),
        ({"main.py": SMOL + "agent.run('Hi')\n"}, "main.py"),
        ({"main.py": SMOL + "os.run('Hi')\n"}, "main:agent"),
        ({"main.py": AGENT.format("agents") + "Runner.run_sync(agent, 'Hi')\n"}, "main.py"),
        ({**LANGGRAPH, "graph.py": GRAPH, "agent.py": AGENT.format("agents")}, "graph:graph"),
        ({**COMMAND, "src/tides/main.py": RUN}, "tides.main:run"),
        ({**COMMAND, "src/tides/main.py": RUN, "src/tides/crew.py": CREW}, "tides.crew:Tides"),
        ({**COMMAND, "src/tides/main.py": RUN, "a/crew.py": CREW, "b/crew.py": CREW}, "tides.main:run"),
        (
            {
                "web/pyproject.toml": COMMAND["pyproject.toml"],
                "web/src/tides/main.py": RUN,
                "web/src/tides/crew.py": CREW + CREW.replace("Tides", "Winds"),
            },
            "tides.main:run",
        ),
        ({**COMMAND, "main.py": SCRIPT}, "main.py"),
        ({"main.py": SCRIPT, "app.py": SCRIPT}, "main.py"),
        ({"src/tides/main.py": SCRIPT}, "src/tides/main.py"),
        ({"report.py": "from crewai import Crew\ncrew = Crew()\nprint(crew.kickoff())\n"}, "report.py"),
        ({"pilot/agent.py": ADK, "pilot/__init__.py": "from . import agent\n"}, "pilot.agent:root_agent"),
        ({"pilot/agent.py": ADK.replace("root_agent", "a") + "root_agent = a\n"}, "pilot.agent:root_agent"),
        ({**CREWAI, "src/tides/crew.py": PLAIN_CREW.format("pilot")}, "tides.crew:Tides"),
        ({**CREWAI, "tides.py": PLAIN_CREW.format("pilot"), "crew.py": CREW}, "crew:Tides"),
        ({**CREWAI, "tides.py": PLAIN_CREW.format("pilot"), "main.py": SCRIPT}, "main.py"),
        ({"src/tides.py": BUILDER}, "tides:build_graph"),
        ({"src/tides.py": BUILDER, "agent.py": GRAPH}, "agent:graph"),
        ({"src/tides.py": BUILDER, "main.py": SCRIPT}, "main.py"),
        ({"agent.py": GRAPH.replace("graph =", "compiled =") + "graph = compiled\n"}, "agent:graph"),
        ({"pilot/agent.py": ADK_APP}, "pilot.agent:app"),
        ({"hello.py": AGENT_SCRIPT, "setup_data.py": SCRIPT}, "hello.py"),
        ({"hello.py": AGENT_SCRIPT.replace(GUARD, "") + "asyncio.run(main())\n"}, "hello.py"),
        ({"hello.py": "import autogen\na = autogen.Agent()\na.initiate_chat(b)\n"}, "hello.py"),
        ({"ask.py": "from agents import Runner\nfrom a import pilot\n" + SCRIPT, "b.py": SCRIPT}, "ask.py"),
        ({"src/hello.py": AGENT_SCRIPT, "src/tools.py": SCRIPT}, "src/hello.py"),
        (
            {
                "hello.py": AGENT_SCRIPT.replace("agents", "google.adk.agents"),
                "store.py": "from google.cloud import storage\n" + AGENT_SCRIPT.partition("\n")[2],
            },
            "hello.py",
        ),
        ({"back/agents.py": MAKER.format("agent = CodeAgent([])\n    return agent")}, "back.agents:make"),
        ({"pilot.py": "async " + MAKER.format("return CodeAgent([])")}, "pilot:make"),
        ({"pilot.py": MAKER.format("return CodeAgent([])"), "main.py": SCRIPT}, "main.py"),
        ({"pilot.py": MAKER.format("return CodeAgent([])"), "graph.py": BUILDER}, "graph:build_graph"),
        ({"main.py": "import openai\nwhile (line := input('?')) != 'q':\n    ...\n"}, "main.py"),
        ({"tides.py": "import langgraph\nfor x in y:\n    print(x)\n", "b.py": "print()\n"}, "tides.py"),
        # A class of a workflow comes last: what makes it and runs it knows its arguments.
        ({"tides.py": WORKFLOW}, "tides:Tides"),
        ({"tides.py": WORKFLOW.replace("llama_index.core.workflow", "workflows")}, "tides:Tides"),
        ({"tides.py": WORKFLOW + "class Own(Workflow): ...\n"}, "tides:Tides"),
        ({"tides.py": WORKFLOW + "class More(Tides):\n    def __init__(self, a): ...\n"}, "tides:Tides"),
        ({"tides.py": WORKFLOW, "main.py": SCRIPT}, "main.py"),
        ({"main.py": WORKFLOW + SCRIPT}, "main.py"),
        ({"tides.py": WORKFLOW + "workflow = Tides(timeout=None)\n", "main.py": SCRIPT}, "tides:workflow"),
        ({"src/tides/workflow.py": WORKFLOW + "app = Tides()\n", "tides.py": SMOL}, "tides.workflow:app"),
        ({"agent.py": LLAMA.format(LLAMA_AGENT)}, "agent:agent"),
        ({"agent.py": LLAMA.format(f"{LLAMA_AGENT}\n{LLAMA_TEAM}")}, "agent:team"),
        (
            {"bot.py": LLAMA.format("workflow = AgentWorkflow.from_tools_or_functions([f], llm=llm)")},
            "bot:workflow",
        ),
        ({"test_hello.py": AGENT.format("agents"), "b/hello_test.py": AGENT.format("agents"),
          "hello.py": AGENT.format("agents")}, "hello:agent"),
    ],
)  # fmt: skip
def test_the_only_one_is_found(files: dict[str, str], entrypoint: str) -> None:
    assert planned(files).plan.entrypoint == entrypoint


def test_log_names_the_discovered_entrypoint() -> None:
    assert planned({**CREWAI, "crew.py": CREW}).notes == ("no entrypoint is configured; found crew:Tides",)


@pytest.mark.parametrize(
    "files",
    [
        {"main.py": "def kickoff(inputs): ...\n"},
        {"main.py": SCRIPT},
        {"src/tides/crew.py": CREW},
        {"crew.toml": "[deployment]\nentrypoint = 'a:f'", "a.py": "def f(inputs): ...\n"},
    ],
)
def test_the_module_of_the_entrypoint_is_parsed_once(files: dict[str, str]) -> None:
    parse_module.cache_clear()
    planned(files)
    assert parse_module.cache_info().misses == 1


def test_several_are_proposed() -> None:
    error = failure({**CREWAI, "a/crew.py": CREW, "b/crew.py": CREW, "c/deep/crew.py": CREW})
    assert error.message.endswith("there are several: a.crew:Tides, b.crew:Tides")
    assert error.hint == (
        "Name one: crewyard deploy --crew a.crew:Tides, spec.source.git.crew of the Project, "
        'or in crew.toml [deployment] entrypoint = "a.crew:Tides".'
    )


@pytest.mark.parametrize(
    "files",
    [
        {"crew.py": "@CrewBase\nclass Tides:\n    def __init__(self, topic): ...\n"},
        {"crew.py": "@CrewBase\nclass Tides:\n    def __init__(self, *, topic): ...\n"},
        {"app.py": "app = FastAPI()\n"},
        {"agent.py": "from mine import Agent\nagent = Agent()\n"},
        {"agent.py": "from agents import Agent\nagent = other\nother = agent\n"},
        {"a.py": PLAIN_CREW.format("pilot"), "b.py": PLAIN_CREW.format("pilot")},
        {"a.py": PLAIN_CREW.format("__init__").replace("(self)", "(self, model)", 1)},
        {"a.py": PLAIN_CREW.format("pilot").replace("crew(self)", "crew(self, model)")},
        {"a.py": PLAIN_CREW.format("pilot").replace("Crew(a", "Agent(a")},
        {"a.py": BUILDER, "b.py": BUILDER},
        {"a.py": BUILDER.replace("=None", "")},
        {"a.py": "import re\ndef build_pattern():\n    return re.compile('x')\n"},
        {"agent.py": "import re\nagent = re.compile('x')\n"},
        {"main.py": "def build(path):\n    return StateGraph(S).compile()\ngraph = build('x')\n"},
        {"flow.py": WORKFLOW.replace("llama_index.core.workflow", "mine")},
        {"flow.py": WORKFLOW + "    def __init__(self, llm): ...\n"},
        {"a.py": MAKER.format("return CodeAgent([])"), "b.py": MAKER.format("return CodeAgent([])")},
        {"a.py": MAKER.format("return CodeAgent([])").replace("=None", "")},
        {"a.py": MAKER.format("CodeAgent([])\n    return 1")},
        {"a.py": MAKER.format("return CodeAgent([])").replace("model=None", "question=None")},
        {"a.py": MAKER.format("return CodeAgent([])").replace("model=None", "**named")},
        {"a.py": BUILDER.replace("saver", "question")},
        {"main.py": "import openai\ndef ask():\n    print()\n"},
        {"main.py": "import openai\ntry:\n    import a\nexcept ImportError:\n    print('no a')\n"},
        {"main.py": "print()\n"},
        {"my-crew/crew.py": CREW},
        {"tests/crew.py": CREW},
        {"crew.py": CREW + "def broken(:\n"},
        {"crew.py": "crew = Crew(agents=[])\ncrew.kickoff()\n"},
        {"crew.json": '{"ship": 1}', "x.py": ""},
        {"flow.yaml": "on: push", "x.py": ""},
        {"crew.toml": "[deployment]\nframework = 'python'\n", "crew.py": CREW},
    ],
)
def test_uncallable_function_is_not_proposed(files: dict[str, str]) -> None:
    assert "several" not in failure(files).message


def test_of_two_modules_with_one_name_only_the_importable_one_counts() -> None:
    project = PROJECT.format("langgraph")
    files = {
        "a/pyproject.toml": project,
        "a/src/agent/graph.py": GRAPH,
        "b/pyproject.toml": project,
        "b/src/agent/graph.py": GRAPH,
    }
    assert planned(files).declaration.projects == ("a",)


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"a/main.py": SCRIPT, "b/main.py": SCRIPT}, "a/main.py"),
        ({"jobs/report.py": "from crewai import Crew\ncrew = Crew()\ncrew.kickoff()\n"}, "jobs/report.py"),
        ({"1: jobs/a.py": AGENT_SCRIPT, "jobs/b.py": AGENT_SCRIPT}, "jobs/b.py"),
    ],
)
def test_a_script_is_named_in_the_hint_and_then_accepted(files: dict[str, str], path: str) -> None:
    hint = failure(files).hint
    assert hint.endswith(f'[deployment] entrypoint = "{path}".')
    assert f"crewyard deploy --crew {path}," in hint
    named = {**files, "crew.toml": f'[deployment]\nentrypoint = "./{path}"\n'}
    assert planned(named).plan.entrypoint == path


@pytest.mark.parametrize(
    "line",
    [
        "import streamlit",
        "import uvicorn.config",
        "from fastapi import FastAPI",
        "from bedrock_agentcore import BedrockAgentCoreApp",
        "from workflows.server import WorkflowServer",
        "import mcp.server.stdio",
    ],
)
def test_a_script_of_a_server_is_not_proposed(line: str) -> None:
    error = failure({"app.py": f"{line}\nfrom crewai import Crew\n" + SCRIPT})
    assert "script" not in error.hint


@pytest.mark.parametrize(
    "files",
    [
        {
            "a.py": "from agents import Agent\nAgent()\nif __name__ == '__main__':\n    pass\n",
            "b.py": "import gradio\n",
        },
        {"a/hello.py": "", "b.py": ""},
        {"hello.py": "import tides\ntides.Agent()\n"},
    ],
)
def test_a_script_among_several_or_of_no_agent_is_not_proposed(files: dict[str, str]) -> None:
    second = {"a.py": "b.py", "a/hello.py": "a/hello.py", "hello.py": "hello.py"}[next(iter(files))]
    files = {**files, second: files[second] + (AGENT_SCRIPT if second != "hello.py" else GUARD)}
    assert failure(files).reason == "EntrypointNotFound"


@pytest.mark.parametrize(
    "code",
    [
        "from agno.agent import Agent\nagent = Agent()\nagent.print_response('Tides?')\n",
        "from agno.agent import Agent\nagent = Agent()\nif __name__ == '__main__':\n    agent.run('?')\n",
        "from strands import Agent\nagent = Agent(tools=[])\nanswer = agent('Tides?')\n",
        "import dspy\nif __name__ == '__main__':\n    dspy.Predict('question -> answer')(question='?')\n",
        "from semantic_kernel import Kernel\n" + SCRIPT,
        "from agent_framework import ChatAgent\n" + SCRIPT,
        "from claude_agent_sdk import query\n" + SCRIPT,
    ],
)
def test_the_only_script_of_a_framework_without_support_is_found(code: str) -> None:
    assert planned({"tides.py": code, "names.py": "X = 1\n"}).plan.entrypoint == "tides.py"


@pytest.mark.parametrize(
    "code",
    [
        "from agno.os import AgentOS\nagent_os = AgentOS()\napp = agent_os.get_app()\n",
        "from agno.os import AgentOS\nif __name__ == '__main__':\n    AgentOS().serve('tides:app')\n",
        "from agno.playground import Playground\n" + SCRIPT,
    ],
)
def test_a_server_of_agno_is_no_script(code: str) -> None:
    error = failure({"tides.py": code})
    assert error.hint.startswith("tides.py serves a page or an API until it is stopped")


def test_a_script_that_starts_a_server_when_it_is_run_is_not_proposed() -> None:
    server = "from tides import app\nif __name__ == '__main__':\n    import uvicorn\n    uvicorn.run(app)\n"
    assert failure({"main.py": server}).reason == "EntrypointNotFound"


@pytest.mark.parametrize(
    "call", ["app.run(debug=True, port=5001)", "app.run(debug=True)", "tides.launch(host='0.0.0.0')"]
)
def test_a_script_that_serves_an_imported_application_is_not_proposed(call: str) -> None:
    files = {"run.py": f"from tides import app\nif __name__ == '__main__':\n    {call}\n"}
    hint = failure(files).hint
    assert hint.startswith("run.py serves a page or an API until it is stopped, and a run has to end.")
    assert "crewyard deploy --crew module:object" in hint


@pytest.mark.parametrize(
    "body",
    [
        "import uvicorn\n    uvicorn.run('tides:app')\n",
        "from tides import app\n    app.run(host='0.0.0.0')\n",
        "serve()\ndef serve():\n    try:\n        import uvicorn\n        uvicorn.run('tides:app')\n"
        "    finally:\n        main()\n",
    ],
)
@pytest.mark.parametrize("start", ["main()", "asyncio.run(main())"])
def test_a_script_whose_functions_start_a_server_is_not_proposed(start: str, body: str) -> None:
    code = f"def main():\n    {body}\nif __name__ == '__main__':\n    {start}\n"
    assert failure({"run.py": code}).hint.startswith("run.py serves a page or an API until it is stopped")


def test_a_script_that_serves_only_with_an_argument_is_proposed() -> None:
    code = (
        "import sys\nfrom tides import crew\ndef serve():\n    import uvicorn\n    uvicorn.run('tides:app')\n"
        "def main():\n    if '--serve' in sys.argv:\n        serve()\n    crew.kickoff()\n" + GUARD
    )
    assert planned({"run.py": code}).plan.entrypoint == "run.py"


def test_the_command_of_the_root_needs_no_other_project() -> None:
    crew = CREW + CREW.replace("Tides", "Winds")
    files = {**COMMAND, "src/tides/main.py": RUN, "src/tides/a.py": crew, "examples/e/c.py": CREW}
    assert planned({**files, "examples/e/pyproject.toml": "{{"}).plan.entrypoint == "tides.main:run"


def test_the_command_of_one_of_several_projects_is_not_proposed() -> None:
    projects = {
        f"{name}/{path}": text.replace("tides", name)
        for name in ("sea", "sky")
        for path, text in {**COMMAND, f"{name}/main.py": RUN, f"{name}/crew.py": CREW}.items()
    }
    assert "there are several" in failure(projects).message


@pytest.mark.parametrize("directory", ["evals", "benchmarks"])
def test_a_script_that_measures_is_not_proposed(directory: str) -> None:
    assert failure({f"{directory}/run.py": SCRIPT}).reason == "EntrypointNotFound"


@pytest.mark.parametrize("call", ["crew.run(debug=True)", "app.run('tides', debug=True)", "crew.launch()"])
def test_a_script_that_runs_its_own_crew_is_no_server(call: str) -> None:
    code = f"from tides import app, crew\nif __name__ == '__main__':\n    {call}\n"
    assert planned({"run.py": code}).plan.entrypoint == "run.py"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("backend/app/main.py", "from fastapi import FastAPI\napp = FastAPI()\n"),
        ("page.py", "import streamlit as st\nst.title('Tides')\n"),
        ("service/start.py", "import uvicorn\n" + SCRIPT),
        (
            "ui/page.py",
            "import gradio as gr\nwith gr.Blocks() as page:\n    gr.Markdown('Tides')\npage.launch()\n",
        ),
        (
            "main.py",
            "from tides import app\nif __name__ == '__main__':\n    import uvicorn\n    uvicorn.run(app)\n",
        ),
    ],
)
def test_a_source_that_only_serves_says_what_to_name(path: str, code: str) -> None:
    files = {path: code, "agents/pilot.py": "def make(model): ...\n", "tests/app.py": code}
    assert failure(files).hint.startswith(f"{path} serves a page or an API until it is stopped")


SERVER = "from fastapi import FastAPI\n{}\napp = FastAPI()\n@app.post('/')\ndef answer(): return {}\n"
RUNNER = "from crewai import Crew\nimport os\ndef run(topic): return Crew(tasks=[]).kickoff()\n"


@pytest.mark.parametrize(
    ("imported", "call", "files", "named"),
    [
        ("from crew import run", "run(1)", {"crew.py": RUNNER}, "crew:run"),
        ("from tides.crew import run as go", "go(1)", {"tides/crew.py": RUNNER}, "tides.crew:run"),
        ("from tides import crew", "crew.run(1)", {"tides/crew.py": RUNNER}, "tides.crew:run"),
        ("import tides.crew", "tides.crew.run(1)", {"tides/crew.py": RUNNER}, "tides.crew:run"),
        ("from crew import run, os", "os.getcwd(), run(1)", {"crew.py": RUNNER}, "crew:run"),
        # Not what a run could call, what is not called, or what is in a module without a framework.
        (
            "from crew import Tides",
            "Tides(1).go()",
            {"crew.py": RUNNER + "class Tides:\n    def __init__(self, x): ...\n"},
            "module:object",
        ),
        ("from crew import run", "1", {"crew.py": RUNNER}, "module:object"),
        ("from log import setup", "setup()", {"log.py": "def setup(): ...\n"}, "module:object"),
        ("from openai import run", "run()", {}, "module:object"),
    ],
)
def test_what_a_server_calls_is_named(imported: str, call: str, files: dict[str, str], named: str) -> None:
    hint = failure({"service.py": SERVER.format(imported, call), **files}).hint
    assert hint.startswith("service.py serves a page or an API until it is stopped, and a run has to end.")
    assert f"crewyard deploy --crew {named}, " in hint
    assert (f"It calls {named}; to run that: " in hint) == (named != "module:object")


def ways(entrypoint: str) -> str:
    return (
        f"crewyard deploy --crew {entrypoint}, spec.source.git.crew of the Project, "
        f'or in crew.toml [deployment] entrypoint = "{entrypoint}".'
    )


SERVES = "service.py serves a page or an API until it is stopped, and a run has to end."


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        (
            {"a.py": WORKFLOW, "b.py": WORKFLOW},
            f"There are several classes of workflows, a:Tides, b:Tides; to run one: {ways('a:Tides')}",
        ),
        (
            {"jobs/a.py": AGENT_SCRIPT + "Crew()"},
            f"jobs/a.py is a script; to run it as one: {ways('jobs/a.py')}",
        ),
        (
            {f"jobs/{name}.py": AGENT_SCRIPT + "Crew()" for name in "ba"}
            | {"c.py": WORKFLOW, "d.py": WORKFLOW},
            f"jobs/a.py, jobs/b.py are scripts; to run one: {ways('jobs/a.py')}",
        ),
        (
            {"service.py": SERVER.format("import os", "1")},
            f"{SERVES} Name the function, crew, graph or agent that it calls: {ways('module:object')}",
        ),
        (
            {"service.py": SERVER.format("from crew import run, gone", "gone(run(1))"), "crew.py": RUNNER},
            f"{SERVES} It calls crew:run; to run that: {ways('crew:run')}",
        ),
        (
            {
                "src/tides/web/service.py": SERVER.format("from ..crew import run, stop", "run(stop(1))"),
                "src/tides/crew.py": RUNNER + "def stop(x): ...\n",
            },
            f"src/tides/web/{SERVES} It calls tides.crew:run, tides.crew:stop; "
            f"to run one: {ways('tides.crew:run')}",
        ),
        (
            {
                "pyproject.toml": "[project.scripts]\na = 'gone:x'\nb = 'tides:ask'\nc = 'tides:ask'\n",
                "tides.py": "async def ask(): ...\n",
                "service.py": SERVER.format("import os", "1"),
            },
            f"The command b of pyproject.toml is tides:ask; to run it: {ways('tides:ask')}",
        ),
        ({"crew.toml": "", "tides.py": ""}, 'Set entrypoint = "module:object" in crew.toml.'),
    ],
)
def test_error_says_what_to_name(files: dict[str, str], hint: str) -> None:
    error = failure(files)
    assert error.message.startswith("main.py or src/main.py not found for main:kickoff")
    assert error.hint == hint


@pytest.mark.parametrize(
    ("kind", "wanted"), [("crew", "decorated with @CrewBase"), ("flow", "derived from Flow")]
)
def test_error_names_the_class_that_the_configuration_requires(kind: str, wanted: str) -> None:
    error = failure({"pyproject.toml": TOOL.format(kind, ""), "main.py": "def kickoff(): ...\n"})
    assert (error.message, error.hint) == (
        f"pyproject.toml: [tool.crewai] requires a class {wanted}; none was found in the sources",
        'Add a crew.toml with [deployment] and entrypoint = "module:object".',
    )


@pytest.mark.parametrize(
    ("framework", "entrypoint"),
    [("crewai", "main:TideFlow"), ("langgraph", "graph:graph"), ("python", "agent:agent")],
)
def test_configured_framework_decides_what_is_searched(framework: str, entrypoint: str) -> None:
    files = {"main.py": FLOW, "graph.py": GRAPH, "agent.py": AGENT.format("agents")}
    assert planned({**files, "crew.toml": f"[deployment]\nframework = '{framework}'\n"}).plan.entrypoint == (
        entrypoint
    )


@pytest.mark.parametrize(
    ("project", "poetry", "entrypoint"),
    [
        ("run_crew = 'a:f'\nkickoff = 'a:g'", "", "a:g"),
        ("run_crew = 'a:f'\nkickoff = 'a:gone'", "", None),
        ("run_crew = 'a:f'", "run_crew = 'a:g'", "a:f"),
        ("other = 'a:f'", "run_crew = 'a:g'", "a:g"),
        ("", "run_crew = {reference = 'a:g', type = 'console'}", None),
    ],
)
def test_command_of_crewai_run_is_found(project: str, poetry: str, entrypoint: str | None) -> None:
    tables = f"[project.scripts]\n{project}\n[tool.poetry.scripts]\n{poetry}\n"
    files = {"pyproject.toml": tables, "a.py": "def f(): ...\ndef g(): ...\n"}
    if entrypoint is None:
        assert failure(files).message.startswith("main.py or src/main.py not found")
    else:
        assert planned(files).plan.entrypoint == entrypoint


NEWER = "def shown(value):\n    return <syntax of a later Python>\n\nelse:\n    pass\n"
NEWER_FLOW = (
    "from crewai.flow.flow import Flow, start\n@persist\nclass TideFlow(Flow[State]):\n"
    "    @start()\n    def ask(self):\n        return <syntax of a later Python>\n"
)


@pytest.mark.parametrize(
    ("code", "entrypoint"),
    [
        (NEWER_FLOW, "tides.main:TideFlow"),
        (NEWER + CREW, "tides.main:Tides"),
        (CREW + NEWER, "tides.main:Tides"),
        (f"@tool(\n    'x'\n)\n{NEWER}{CREW}", "tides.main:Tides"),
    ],
)
def test_a_module_that_only_a_newer_python_parses_is_searched(code: str, entrypoint: str) -> None:
    files = {"pyproject.toml": f"{PROJECT.format('crewai')}requires-python = '>=3.99'\n"}
    files["src/tides/main.py"] = code
    made = make_plan({path: text.encode() for path, text in files.items()}, None, ["3.99"])
    assert made.plan.entrypoint == entrypoint


def test_command_of_a_module_that_only_a_newer_python_parses_is_not_named() -> None:
    files = {"pyproject.toml": "[project.scripts]\na = 'tides:ask'\n", "tides.py": NEWER}
    with pytest.raises(PlanError) as raised:
        make_plan({path: text.encode() for path, text in files.items()}, None, ["3.99"])
    assert raised.value.hint == 'Set entrypoint = "module:object" in crew.toml.'


def test_notebooks_with_a_helper_get_the_hint_for_notebooks() -> None:
    files = {"1. Tides/tides.ipynb": "{}", "1. Tides/utils.py": "def key(): ...\n"}
    assert failure(files).hint.endswith(
        "Notebooks are not run: export one with jupyter nbconvert --to script."
    )


def test_a_script_below_a_directory_with_spaces_is_proposed_and_accepted() -> None:
    path = "02 - Tides (demo), part 1 & 2/1. ask.py"
    files = {path: AGENT_SCRIPT, "requirements.txt": "openai-agents\n"}
    assert failure(files).hint.startswith(
        f"{path} is a script; to run it as one: crewyard deploy --crew '{path}', spec.source.git.crew"
    )
    made = make_plan({name: text.encode() for name, text in files.items()}, path, ["3.11"])
    assert made.plan.entrypoint == path


@pytest.mark.parametrize("path", ["año nuevo.py", "mareas – año/ask.py"])
def test_a_script_whose_path_cannot_be_named_says_so(path: str) -> None:
    """An entrypoint `module:object` would not help, it has no object."""
    hint = failure({path: AGENT_SCRIPT, "requirements.txt": "openai-agents\n"}).hint
    assert hint == (
        f"{path} is a script, but the path of an entrypoint has only ASCII letters, digits, spaces and "
        "_-.,()&+; rename it."
    )


COMMAND_LINES = {
    "tides.cli:app": "import typer\napp = typer.Typer()\n",
    "tides.cli:start": "app = make()\ndef start():\n    app()\n",
    "tides.cli:cli": "import click\n@click.group()\ndef cli(): ...\n",
}


@pytest.mark.parametrize("table", ["project.scripts", "tool.poetry.scripts"])
@pytest.mark.parametrize("command", COMMAND_LINES)
def test_a_command_of_the_project_is_proposed(command: str, table: str) -> None:
    files = {
        "pyproject.toml": PROJECT.format("typer")
        + f"[{table}]\na = 'x:y'\nb = 'tides.cli:made'\nc = '{command}'\n",
        "src/tides/cli.py": COMMAND_LINES[command] + "made = make()\n",
    }
    assert failure(files).hint.startswith(
        f"The command c of pyproject.toml is {command}; to run it: crewyard deploy --crew {command}, "
    )
    named = {**files, "crew.toml": f"[deployment]\nentrypoint = '{command}'\n"}
    assert planned(named).plan.entrypoint == command


def test_an_agent_directory_of_the_kit_is_named_by_its_object() -> None:
    """`adk run tides/pilot` names a directory; the hint can be followed."""
    files = {"tides/pilot/agent.py": ADK.encode(), "tides/pilot/__init__.py": b"from . import agent\n"}
    for crew in ("tides/pilot", "tides/pilot/"):
        with pytest.raises(PlanError) as raised:
            make_plan(files, crew, ["3.11"])
        assert raised.value.hint == "tides/pilot has an agent; name it as tides.pilot.agent:root_agent."
    assert make_plan(files, "tides.pilot.agent:root_agent", ["3.11"]).plan.framework == "python"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("graph = make()\ngraph.invoke({})\n", 2),
        ("graph = make()\nif True:\n    print(graph.invoke({}))\n", 3),
        ("class A:\n    x = crew.kickoff()\ngraph = A\n", 2),
        ("graph = builder.compile()\nfor event in graph.stream({}):\n    print(event)\n", 2),
        ("graph = create_react_agent(m)\nprint(*graph.stream({}))\n", 2),
        ("graph = Agent()\nprint(graph('Tides?'))\n", 2),
        ("graph = Agent()\ngraph.print_response('Tides?')\n", 2),
        ("graph = Agent()\nmake()\n", None),
        ("graph = make()\nwith client.stream('GET', url) as answer: ...\n", None),
        ("graph = make()\nasync def f():\n    await graph.ainvoke({})\n", None),
        ("graph = make()\nif __name__ == '__main__':\n    graph.invoke({})\n", None),
        ("graph = make()\nif '__main__' == __name__:\n    graph.invoke({})\n", None),
    ],
)
def test_a_module_that_runs_when_imported_is_noted(code: str, line: int | None) -> None:
    notes = planned({"crew.toml": "[deployment]\nentrypoint = 'main:graph'\n", "main.py": code}).notes
    expected = f"main.py line {line} runs when the module is imported, before main:graph is called"
    assert [note.partition(";")[0] for note in notes] == ([] if line is None else [expected])
