"""What a module does when it is imported or run. Called by plan.make and plan.discovery."""

import ast

from ..bindings import last_name

# Methods that run a crew, a flow, a graph or an agent.
RUN_METHODS = frozenset(
    {
        "aprint_response",
        "ainvoke",
        "initiate_chat",
        "invoke",
        "kickoff",
        "kickoff_async",
        "kickoff_for_each",
        "print_response",
        "run_sync",
    }
)
# These methods of an agent or graph run it; those of other objects may do anything.
OWN_RUN_METHODS = frozenset({"run", "run_stream", "stream", "astream"})
_TALK = frozenset({"input", "print", "pprint"})
_AGENT_CALL_ENDS = ("Agent", "GroupChat", "_agent", "compile")


def line_of_run_on_import(tree: ast.Module) -> int | None:
    """Return the first line that runs a crew, flow or graph while the module is imported, or None."""
    agents = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and last_name(node.value).endswith(_AGENT_CALL_ENDS)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    pending: list[ast.AST] = [*reversed(tree.body)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_main_guard(node):
            continue
        if isinstance(node, ast.Call) and _runs(node.func, agents):
            return node.lineno
        pending += reversed([*ast.iter_child_nodes(node)])
    return None


def _runs(function: ast.expr, agents: set[str]) -> bool:
    """Return whether a call of this function runs one of `agents`, or another crew, flow or graph."""
    match function:
        case ast.Attribute(attr=name, value=ast.Name(id=owner)) if name in OWN_RUN_METHODS:
            return owner in agents or owner == "asyncio"
        case ast.Attribute(attr=name):
            return name in RUN_METHODS
        case ast.Name(id=name):
            return name in agents
    return False


def is_script(tree: ast.Module) -> bool:
    """Return whether the module does its work when it is run as a file."""
    return any(is_main_guard(node) for node in tree.body) or line_of_run_on_import(tree) is not None


def talks_on_import(tree: ast.Module) -> bool:
    """Return whether the module prints, or asks for a line, where it is not in a function or a guard."""
    pending: list[ast.AST] = [*tree.body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Try) or is_main_guard(node):
            continue  # such as a message about an import that fails
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _TALK:
            return True
        pending += ast.iter_child_nodes(node)
    return False


def is_main_guard(node: ast.AST) -> bool:
    """Return whether the node is `if __name__ == "__main__":`."""
    match node:
        case ast.If(test=ast.Compare(left=left, ops=[ast.Eq() | ast.Is() | ast.In()], comparators=[right])):
            return {ast.unparse(left), ast.unparse(right)} == {"__name__", "'__main__'"}
    return False
