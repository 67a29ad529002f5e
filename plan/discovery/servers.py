"""Programs that serve a page or an API until they are stopped, so they are no crew. Called by .candidates."""

import ast
from collections.abc import Collection, Iterator

from ..bindings import last_name
from .import_effects import is_script

SERVER_HINTS = (
    b"agno.os",
    b"agno.playground",
    b"chainlit",
    b"fastapi",
    b"flask",
    b"gradio",
    b"streamlit",
    b"uvicorn",
)
"""Parts of the sources of most servers."""

_PAGES = frozenset({"chainlit", "streamlit"})
_PACKAGES = _PAGES | {
    "agno.os",
    "agno.playground",
    "bedrock_agentcore",
    "django",
    "fastapi",
    "fastmcp",
    "flask",
    "gradio",
    "mcp.server",
    "quart",
    "sanic",
    "starlette",
    "uvicorn",
    "workflows.server",
}
# Classes of applications, and the method of Agno's server that makes one.
_APPLICATIONS = frozenset({"FastAPI", "Flask", "Quart", "Sanic", "Starlette", "get_app"})
_SERVING_METHODS = frozenset({"launch", "run"})
_ADDRESS_ARGUMENTS = frozenset({"host", "port"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_APPLICATION_NAMES = frozenset({"app", "application"})


def uses_server(tree: ast.Module, imported: Collection[str]) -> bool:
    """Return whether a module that imports these packages has to do with a server."""
    return not _PACKAGES.isdisjoint(imported) or any(map(_serves, _calls_of_script(tree)))


def has_application(tree: ast.Module, imported: Collection[str]) -> bool:
    """Return whether a module that uses a server is one itself, or has the application that one serves."""
    return (
        is_script(tree)
        or not _PAGES.isdisjoint(imported)
        or any(isinstance(node, ast.Assign) and last_name(node.value) in _APPLICATIONS for node in tree.body)
        or ("gradio" in imported and any(last_name(call) == "launch" for call in _calls_of_script(tree)))
    )


def _calls_of_script(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls that run when the file is run; those of its functions only without a condition."""
    functions = {node.name: node for node in tree.body if isinstance(node, _FUNCTIONS)}
    pending: list[tuple[ast.AST, bool]] = [(node, False) for node in tree.body]
    while pending:
        node, in_function = pending.pop()
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            continue
        if in_function and isinstance(node, ast.If | ast.IfExp | ast.Match):
            continue
        if isinstance(node, ast.Call):
            yield node
            if isinstance(node.func, ast.Name) and (function := functions.pop(node.func.id, None)):
                pending += [(statement, True) for statement in function.body]
        pending += [(child, in_function) for child in ast.iter_child_nodes(node)]


def _serves(call: ast.Call) -> bool:
    """Return whether this is a call such as `uvicorn.run(a)`, `app.run(port=1)` or `app.run(debug=True)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _SERVING_METHODS:
        return False
    names = {keyword.arg for keyword in call.keywords}
    owner = call.func.value.id if isinstance(call.func.value, ast.Name) else None
    return (
        owner == "uvicorn"
        or not _ADDRESS_ARGUMENTS.isdisjoint(names)
        or ("debug" in names and not call.args and owner in _APPLICATION_NAMES)
    )
