"""Frameworks of agents, and what a module imports. Called by .candidates and .served."""

import ast

# A package in a namespace that other libraries share.
_ADK = "google.adk"
_FRAMEWORKS = frozenset(
    {
        "ag2",
        "agent_framework",
        "agents",
        "agno",
        "anthropic",
        "autogen",
        "autogen_agentchat",
        "autogen_core",
        "claude_agent_sdk",
        "crewai",
        "dspy",
        _ADK,
        "langchain",
        "langgraph",
        "langmem",
        "openai",
        "pydantic_ai",
        "semantic_kernel",
        "smolagents",
        "strands",
    }
)


def is_framework(package: str) -> bool:
    """Return whether agents are made with the package."""
    return package in _FRAMEWORKS or package.startswith(("langchain_", "langgraph_", "llama_index"))


def imported_packages(tree: ast.Module) -> set[str]:
    """Return what the module imports at its top level and where it is run as a script.

    These are packages, and of `import a.b.c` and `from a.b import c` also `a.b`.
    """
    imported: set[str] = set()
    guarded = [statement for node in tree.body if isinstance(node, ast.If) for statement in node.body]
    for node in (*tree.body, *guarded):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module]
            case _:
                continue
        for module in modules:
            parts = module.split(".")
            imported |= {parts[0], ".".join(parts[:2])}
    return imported
