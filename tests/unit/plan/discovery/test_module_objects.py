"""Crews, flows, graphs, workflows and agents that a module defines."""

import ast

import pytest

from plan.discovery.module_objects import (
    AGENT,
    CREW,
    FLOW,
    GRAPH,
    WORKFLOW,
    agent_builders,
    crew_classes,
    graph_builders,
    runnable_classes,
    runnable_objects,
    workflow_classes,
)


@pytest.mark.parametrize(
    ("code", "objects"),
    [
        ("@CrewBase\nclass A: ...\nclass B(Flow[State]): ...\nclass C(X): ...", [(CREW, "A"), (FLOW, "B")]),
        ("@project.CrewBase\nclass A:\n    def __init__(self, x=1, *, y=2): ...", [(CREW, "A")]),
        ("@CrewBase\nclass A:\n    def __init__(self, x): ...\n    def run(self): ...", []),
        ("class B(Flow):\n    def __init__(self, *, x): ...", []),
        ("class B(Flow):\n    def run(self, x): ...", [(FLOW, "B")]),
        ("crew = Crew(agents=[])", [(CREW, "crew")]),
        ("crew: Crew = Crew()\ncrew2 = Crew()", [(CREW, "crew")]),
        ("team = Crew()\ncrew = make()", []),
        ("made = Crew()\ncrew = made", [(CREW, "crew")]),
        # Graphs.
        ("graph = builder.compile()", [(GRAPH, "graph")]),
        ("agent = make().compile()\napp = b.compile()", [(GRAPH, "app")]),
        ("workflow = b.compile().with_config(x=1)", [(GRAPH, "workflow")]),
        ("app = b.compile().bind(x=1)", [(GRAPH, "app")]),
        ("app = x.with_config(1)\nworkflow = with_config(1)", []),
        ("app: Any = langgraph.StateGraph(S)", [(GRAPH, "app")]),
        ("agent = MessageGraph()", [(GRAPH, "agent")]),
        ("app = StateGraph(S)\nagent = b.compile()", [(GRAPH, "agent")]),
        ("agent = create_react_agent(m)", [(GRAPH, "agent")]),
        ("agent = prebuilt.create_supervisor([])", [(GRAPH, "agent")]),
        ("app = create_swarm([]).compile()", [(GRAPH, "app")]),
        ("app = create_app()\ngraph = make_agent()\nagent = agent_create_agent()", []),
        ("def make(x=1):\n    return b.compile()\ngraph = make()", [(GRAPH, "graph")]),
        ("def make():\n    return b.compile()\napp = make().with_config(1)", [(GRAPH, "app")]),
        ("def make(x, y=1):\n    return b.compile()\ngraph = make(1)", []),
        ("def make(x, /, y=1):\n    return b.compile()\ngraph = make(1)", []),
        ("def make():\n    return compile(x)\ngraph = make()", []),
        ("def make():\n    return re.compile(x)\ngraph = make()", []),
        ("def make():\n    return b.build()\ngraph = make()", []),
        ("graph = re.compile('x')\napp = compile('x')\nagent = 1", []),
        ("result = b.compile()", []),
        ("a, graph = b.compile()", []),
        # Workflows and agents.
        ("from workflows import Workflow\nclass A(Workflow): ...\nworkflow = A()", [(WORKFLOW, "workflow")]),
        (
            "from workflows import Workflow as W\nclass A(W): ...\nclass B(A): ...\nagent_workflow = B()",
            [(WORKFLOW, "agent_workflow")],
        ),
        (
            "from llama_index.core.agent import AgentWorkflow\napp = AgentWorkflow.from_f([])\nteam = f()",
            [(WORKFLOW, "app")],
        ),
        ("from mine import Workflow\nclass A(Workflow): ...\nworkflow = A()", []),
        ("from .workflows import Workflow\nclass A(Workflow): ...\nworkflow = A()", []),
        ("from workflows import Workflow\nworkflow = Workflow\nclass A: ...\napp = A()", []),
        ("from agents import Agent as A\nteam = A()\nroot_agent = A()", [(AGENT, "root_agent")]),
        ("from agents import Agent\nagent = Agent\nteam = Agent.make()", []),
        ("from agents import Agent, Runner\nagent = Runner()", []),
        ("from pydantic_ai import Agent\nagent = Agent[str, int]('m')", []),
        ("from agents import Agent\nagent = Agent()\ngraph = b.compile()", [(GRAPH, "graph")]),
        (
            "from agents import Agent\nfrom workflows import Workflow\nagent = Agent()\nteam = Workflow()",
            [(WORKFLOW, "team")],
        ),
        ("from agents import Agent\na = Agent()\nb = a\nc = b\nd = c\ne = d\nagent = e", [(AGENT, "agent")]),
        ("from agents import Agent\na = Agent()\nb = a\nc = b\nd = c\ne = d\nf = e\nagent = f", []),
        ("from agents import Agent\nagent = other\nother = agent", []),
    ],
)
def test_runnable_objects_of_a_module(code: str, objects: list[tuple[str, str]]) -> None:
    assert [(found.kind, found.name) for found in runnable_objects(ast.parse(code))] == objects


CREW_METHOD = "    def crew(self):\n        made = crewai.Crew(agents=[])\n        return made\n"


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (f"class A:\n{CREW_METHOD}class B:\n    x = 1\n{CREW_METHOD}", ["A", "B"]),
        (f"class A(Base):\n{CREW_METHOD}".replace("(self)", "(self, x=1)"), ["A"]),
        (f"class A:\n{CREW_METHOD}".replace("(self)", "(self, x)"), []),
        (f"class A:\n    def __init__(self, x): ...\n{CREW_METHOD}", []),
        (f"class A:\n    def __init__(self): ...\n{CREW_METHOD}", ["A"]),
        (f"@CrewBase\nclass A:\n{CREW_METHOD}", []),
        (f"class A(Flow):\n{CREW_METHOD}", []),
        (f"class A:\n{CREW_METHOD}".replace("def crew", "def team"), []),
        (f"class A:\n{CREW_METHOD}".replace("Crew(", "Agent("), []),
        ("class A:\n    def crew(self):\n        return Crew\ndef crew(): Crew()", []),
    ],
)
def test_classes_with_a_method_that_makes_a_crew(code: str, names: list[str]) -> None:
    assert list(crew_classes(ast.parse(code))) == names


def test_classes_that_a_run_could_use() -> None:
    code = (
        "@CrewBase\nclass A: ...\n"
        "class B(Flow): ...\n"
        "class C:\n    x = 1\n    def kickoff(self): ...\n"
        "class D:\n    def describe(self): ...\n"
        "class E:\n    def __init__(self, x): ...\n    def kickoff(self): ...\n"
        "@CrewBase\nclass F:\n    def __init__(self, x): ...\n"
        "def invoke(): ...\n"
    )
    assert runnable_classes(ast.parse(code)) == {"A", "B", "C"}


GRAPH_BODY = "\n    return StateGraph(S).compile()\n"


@pytest.mark.parametrize(
    ("head", "builds"),
    [
        ("def build_graph():", True),
        ("def make_it(saver=None, debug=False):", True),
        ("def get_graph(model='m'):", True),
        ("def create_graph(model='m', /):", True),
        ("def compile_graph(*, verbose=False):", True),
        # A run would give its input to these, or not call them.
        ("def build_graph(topic=''):", False),
        ("def build_graph(topic='', /):", False),
        ("def build_graph(x='', inputs=None):", False),
        ("def build_graph(model):", False),
        ("def build_graph(model, saver=None):", False),
        ("def build_graph(*, model):", False),
        ("def build_graph(*models):", False),
        ("def build_graph(**models):", False),
        ("def graph():", False),
        ("async def build_graph():", False),
        ("class build_graph:\n  def build_x():", False),
    ],
)
def test_functions_that_build_a_graph_without_arguments(head: str, builds: bool) -> None:
    name = head.partition("(")[0].removeprefix("def ")
    assert list(graph_builders(ast.parse(head + GRAPH_BODY))) == ([name] if builds else [])


def test_builders_without_a_graph_are_passed_over() -> None:
    code = (
        "X = 1\ndef build_a():\n    return b.build()\ndef g():" + GRAPH_BODY + "def build_b():" + GRAPH_BODY
    )
    assert list(graph_builders(ast.parse(code))) == ["build_b"]


@pytest.mark.parametrize(
    ("body", "builds"),
    [
        ("return CodeAgent([])", True),
        ("agent = CodeAgent([])\n    return agent", True),
        ("a = b = CodeAgent([])\n    if x:\n        return b", True),
        ("return Team.from_agents([])", True),
        ("return team.run()\n    return Team()", True),
        ("CodeAgent([])\n    return", False),
        ("return CodeAgent", False),
        ("return Other([])", False),
        ("x.agent = CodeAgent([])\n    return agent", False),
    ],
)
def test_functions_that_return_an_agent(body: str, builds: bool) -> None:
    head = "from smolagents import CodeAgent\nfrom llama_index.core.agent import AgentWorkflow as Team\n"
    for define in ("def", "async def"):
        for arguments, called in (("model=None", True), ("question=None", False), ("model", False)):
            code = f"{head}{define} make({arguments}):\n    {body}\n{define} last():\n    return Team()\n"
            expected = ["make", "last"] if builds and called else ["last"]
            assert list(agent_builders(ast.parse(code))) == expected


STEP = "    @step\n    async def look(self): ...\n"


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (f"class A(Workflow):\n{STEP}", ["A"]),
        (f"class A(Workflow):\n    x = 1\n{STEP}".replace("@step", "@mark\n    @step(x=1)"), ["A"]),
        (f"class A(Workflow):\n{STEP}".replace("async def", "def"), ["A"]),
        (f"class A(Workflow): ...\nclass B(Mixin, A):\n{STEP}class C(B): ...\n", ["B"]),
        (f"class A(Workflow):\n    def __init__(self, x): ...\n{STEP}class B(A):\n{STEP}", ["B"]),
        (f"class A(Other):\n{STEP}", []),
        (f"class A(Workflow):\n{STEP}".replace("@step", "@mark"), []),
    ],
)
def test_workflows_with_steps_that_need_no_arguments(code: str, names: list[str]) -> None:
    tree = ast.parse("from llama_index.core.workflow import Context, Workflow\nX = 1\n" + code)
    assert list(workflow_classes(tree)) == names
