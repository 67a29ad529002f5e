"""What a module does when it is imported or run. Called by plan.make and plan.discovery."""

import ast

# Methods that run a crew, a flow or a graph.
_RUN_METHODS = frozenset({"kickoff", "kickoff_async", "kickoff_for_each", "invoke", "ainvoke"})


def line_of_run_on_import(tree: ast.Module) -> int | None:
    """Return the first line that runs a crew, flow or graph while the module is imported, or None."""
    pending: list[ast.AST] = [*reversed(tree.body)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_main_guard(node):
            continue
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _RUN_METHODS
        ):
            return node.lineno
        pending += reversed([*ast.iter_child_nodes(node)])
    return None


def is_script(tree: ast.Module) -> bool:
    """Return whether the module does its work when it is run as a file."""
    return any(is_main_guard(node) for node in tree.body) or line_of_run_on_import(tree) is not None


def is_main_guard(node: ast.AST) -> bool:
    """Return whether the node is `if __name__ == "__main__":`."""
    if not (
        isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and len(node.test.comparators) == 1
    ):
        return False
    names = {ast.unparse(side) for side in (node.test.left, node.test.comparators[0])}
    return names == {"__name__", "'__main__'"}
