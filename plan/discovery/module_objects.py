"""Crews, flows, graphs, workflows and agents that a module defines. Called by plan.discovery.candidates."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..bindings import last_name

CREW, FLOW, GRAPH, WORKFLOW, AGENT = "crew", "flow", "graph", "workflow", "agent"

_GRAPH_NAMES = ("graph", "app", "agent", "workflow")
_AGENT_BUILDER_ENDS = ("agent", "graph", "supervisor", "swarm")
_AGENT_NAMES = (*_GRAPH_NAMES, "root_agent", "team")
_LLAMA_INDEX_AGENTS = ("CodeActAgent", "FunctionAgent", "ReActAgent")
# Classes whose objects take a prompt, by package: OpenAI Agents SDK, Pydantic AI, smolagents, AutoGen, ADK,
# LlamaIndex.
_AGENT_CLASSES = {
    "agents": ("Agent",),
    "pydantic_ai": ("Agent",),
    "smolagents": ("CodeAgent", "ToolCallingAgent"),
    "autogen_agentchat.agents": ("AssistantAgent", "CodeExecutorAgent", "SocietyOfMindAgent"),
    "autogen_agentchat.teams": (
        "GraphFlow",
        "MagenticOneGroupChat",
        "RoundRobinGroupChat",
        "SelectorGroupChat",
        "Swarm",
    ),
    "google.adk": ("Agent",),
    "google.adk.agents": ("Agent", "LlmAgent", "LoopAgent", "ParallelAgent", "SequentialAgent"),
    "google.adk.agents.llm_agent": ("Agent", "LlmAgent"),
    "google.adk.agents.loop_agent": ("LoopAgent",),
    "google.adk.agents.parallel_agent": ("ParallelAgent",),
    "google.adk.agents.sequential_agent": ("SequentialAgent",),
    "google.adk.apps": ("App",),
    "google.adk.apps.app": ("App",),
    "llama_index.core.agent": _LLAMA_INDEX_AGENTS,
    "llama_index.core.agent.workflow": _LLAMA_INDEX_AGENTS,
}
# Workflows of LlamaIndex: the base of a crew's own, and a class that is one.
_WORKFLOW_CLASSES = {
    "llama_index.core.agent": ("AgentWorkflow",),
    "llama_index.core.agent.workflow": ("AgentWorkflow",),
    "llama_index.core.workflow": ("Workflow",),
    "workflows": ("Workflow",),
}
_WORKFLOW_NAMES = (*_AGENT_NAMES, "agent_workflow")
# A run gives its input to an only, optional parameter, unless it has one of these names (runner: call.py).
_PART_NAMES = frozenset({"checkpointer", "debug", "llm", "model", "model_name", "saver", "tools", "verbose"})
_BUILDER_STARTS = ("build_", "compile_", "create_", "get_", "make_")
_MAX_ALIASES = 5
# Methods of an object that a run calls.
_RUNNABLE = frozenset({"compile", "crew", "invoke", "kickoff"})
_STATE_GRAPHS = ("StateGraph", "MessageGraph")


@dataclass(frozen=True)
class RunnableObject:
    """An object that a run can call; `kind` is CREW, FLOW, GRAPH, WORKFLOW or AGENT."""

    kind: str
    name: str


def runnable_objects(tree: ast.Module) -> Iterator[RunnableObject]:
    """Yield the classes of crews and flows, a Crew object, and the module's graph, workflow or agent."""
    values: dict[str, ast.expr] = {}
    builders: set[str] = set()
    for node in tree.body:
        match node:
            case ast.ClassDef():
                if (kind := _class_kind(node)) and not _requires_arguments(node):
                    yield RunnableObject(kind, node.name)
            case ast.FunctionDef():
                if _compiles(node):
                    builders.add(node.name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values[name] = value
    values = {name: _resolved(value, values) for name, value in values.items()}
    if last_name(values.get("crew")) == "Crew":
        yield RunnableObject(CREW, "crew")
    graphs = [name for name in _GRAPH_NAMES if _is_graph(values.get(name), builders)]
    graphs += [name for name in _GRAPH_NAMES if last_name(values.get(name)) in _STATE_GRAPHS]
    workflow_kinds = {*_imported(tree, _WORKFLOW_CLASSES), *(node.name for node in _own_workflows(tree))}
    agent_kinds = _imported(tree, _AGENT_CLASSES)
    if graphs:
        yield RunnableObject(GRAPH, graphs[0])
    elif workflows := [name for name in _WORKFLOW_NAMES if _is_workflow(values.get(name), workflow_kinds)]:
        yield RunnableObject(WORKFLOW, workflows[0])
    elif agents := [name for name in _AGENT_NAMES if _is_agent(values.get(name), agent_kinds)]:
        yield RunnableObject(AGENT, agents[0])


def crew_classes(tree: ast.Module) -> Iterator[str]:
    """Yield the classes without @CrewBase whose method `crew` makes a Crew, and that need no arguments."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _class_kind(node) is None and not _requires_arguments(node):
            methods = (
                each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "crew"
            )
            if any(_makes_crew(method) for method in methods):
                yield node.name


def runnable_classes(tree: ast.Module) -> set[str]:
    """Return the classes of crews and flows, and others that make or run one, that need no arguments."""
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and not _requires_arguments(node)
        and (
            _class_kind(node)
            or any(isinstance(each, ast.FunctionDef) and each.name in _RUNNABLE for each in node.body)
        )
    }


def graph_builders(tree: ast.Module) -> Iterator[str]:
    """Yield the functions that return a compiled graph, need no arguments, and are named so."""
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or _takes_input(node.args):
            continue
        if node.name.startswith(_BUILDER_STARTS) and _compiles(node):
            yield node.name


def agent_builders(tree: ast.Module) -> Iterator[str]:
    """Yield the functions that return an agent or a workflow and need no arguments."""
    kinds = {*_imported(tree, _AGENT_CLASSES), *_imported(tree, _WORKFLOW_CLASSES)}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _takes_input(node.args):
            values = {
                target.id: each.value
                for each in ast.walk(node)
                if isinstance(each, ast.Assign)
                for target in each.targets
                if isinstance(target, ast.Name)
            }
            returned = (each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value)
            if any(_is_workflow(_resolved(value, values), kinds) for value in returned):
                yield node.name


def workflow_classes(tree: ast.Module) -> Iterator[str]:
    """Yield the classes of LlamaIndex workflows that have steps and need no arguments."""
    for node in _own_workflows(tree):
        if not _requires_arguments(node) and _has_steps(node):
            yield node.name


def _own_workflows(tree: ast.Module) -> list[ast.ClassDef]:
    """Return the classes derived from LlamaIndex's Workflow, directly or from each other."""
    bases = _imported(tree, _WORKFLOW_CLASSES)
    found = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(last_name(base) in bases for base in node.bases):
            bases.add(node.name)
            found.append(node)
    return found


def _imported(tree: ast.Module, classes: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Return the names that the module gives the classes, which are listed by package."""
    return {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
        if alias.name in classes.get(node.module or "", ())
    }


def _resolved(value: ast.expr, values: dict[str, ast.expr]) -> ast.expr:
    """Return the value that a name stands for, as in `root_agent = pilot`."""
    for _ in range(_MAX_ALIASES):
        if not isinstance(value, ast.Name) or value.id not in values:
            break
        value = values[value.id]
    return value


def _class_kind(node: ast.ClassDef) -> str | None:
    if any(last_name(mark) == "CrewBase" for mark in node.decorator_list):
        return CREW
    return FLOW if any(last_name(base) == "Flow" for base in node.bases) else None


def _makes_crew(method: ast.FunctionDef) -> bool:
    if _has_required(method.args, 1):
        return False
    return any(isinstance(each, ast.Call) and last_name(each) == "Crew" for each in ast.walk(method))


def _requires_arguments(node: ast.ClassDef) -> bool:
    """Return whether the class cannot be instantiated without arguments."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            return _has_required(method.args, 1)
    return False


def _takes_input(arguments: ast.arguments) -> bool:
    """Return whether a run would call a function of these arguments with its input."""
    positional = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    only = len(positional) == 1 and positional[0] not in _PART_NAMES
    others = arguments.vararg or arguments.kwarg or "inputs" in positional
    return only or bool(others) or _has_required(arguments)


def _has_required(arguments: ast.arguments, given: int = 0) -> bool:
    """Return whether a call needs arguments besides the `given` ones."""
    positional = len(arguments.posonlyargs) + len(arguments.args) - given
    return positional > len(arguments.defaults) or None in arguments.kw_defaults


def _is_graph(value: ast.expr | None, builders: set[str]) -> bool:
    if not isinstance(value, ast.Call):
        return False
    name = last_name(value)
    owner = value.func.value if isinstance(value.func, ast.Attribute) else None
    if name == "compile":
        return owner is not None and last_name(owner) != "re"
    if name in ("with_config", "bind"):
        return _is_graph(owner, builders)
    return name in builders or (name.startswith("create_") and name.endswith(_AGENT_BUILDER_ENDS))


def _is_agent(value: ast.expr | None, classes: set[str]) -> bool:
    return isinstance(value, ast.Call) and last_name(value) in classes


def _is_workflow(value: ast.expr | None, classes: set[str]) -> bool:
    """Return whether the value is an object of these classes, or made by a method of one of them."""
    if not isinstance(value, ast.Call):
        return False
    owner = value.func.value if isinstance(value.func, ast.Attribute) else None
    return last_name(value) in classes or last_name(owner) in classes


def _has_steps(node: ast.ClassDef) -> bool:
    """Return whether a method is a step of a workflow."""
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(last_name(mark) == "step" for method in methods for mark in method.decorator_list)


def _compiles(function: ast.FunctionDef) -> bool:
    """Return whether the function calls `.compile()` and needs no arguments, as one that builds a graph."""
    arguments = function.args
    if len(arguments.posonlyargs) + len(arguments.args) > len(arguments.defaults):
        return False
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_graph(node, set())
        for node in ast.walk(function)
    )
