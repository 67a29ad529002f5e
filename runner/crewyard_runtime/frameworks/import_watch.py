"""Import hook that installs the event hooks when the crew imports a framework. Called by `crew`.

A crew without frameworks pays two comparisons per import; it loads no other module of the runtime before.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def start() -> None:
    """Install the import hook. Call it before the crew's first import."""
    sys.meta_path.insert(0, _ImportHook())
    for name in (*_PREPARED_MODULES, *_HOOKED_MODULES):
        if name in sys.modules:  # imported by a .pth file, before any crew code
            _prepare(name) if name in _PREPARED_MODULES else _install(name, sys.modules[name])


# The framework module after whose execution to install our hook. CrewAI's bus moved in 0.150.
_HOOKED_MODULES = {
    "crewai.events.event_bus": "crewai",
    "crewai.utilities.events.crewai_event_bus": "crewai",
    "crewai.events.listeners.tracing.utils": "crewai_traces",
    "langchain_core.tracers.context": "langchain",
    "agents.run": "openai_agents",
    "pydantic_ai": "pydantic_ai",
    "smolagents.agents": "smolagents",
    "autogen_agentchat.agents._base_chat_agent": "autogen_agents",
    "autogen_core.tools._base": "autogen_tools",
    "google.adk.agents.base_agent": "adk_agents",
    "google.adk.plugins.plugin_manager": "adk_plugins",
    "llama_index_instrumentation": "llama_index",
    "llama_index.core.instrumentation": "llama_index",  # before 0.13
    "logging": "logging",
}
# Frameworks that read variables when they are imported.
_PREPARED_MODULES = ("crewai", "agents", "smolagents")


class _ImportHook:
    """A meta path finder that delegates to the others and runs our hook after a module's execution."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in _PREPARED_MODULES:
            _prepare(name)
        if name not in _HOOKED_MODULES:
            return None
        for finder in [finder_ for finder_ in sys.meta_path if finder_ is not self]:
            spec: ModuleSpec | None = finder.find_spec(name, path, target)
            if spec is not None:
                return _with_hook(spec)
        return None


def _with_hook(spec: ModuleSpec) -> ModuleSpec:
    execute = getattr(spec.loader, "exec_module", None)
    if execute is None:
        return spec

    def execute_and_hook(module: ModuleType) -> None:
        execute(module)
        _install(spec.name, module)

    try:
        # Patch the loader itself, so inspect and importlib.resources still get the loader they expect.
        spec.loader.exec_module = execute_and_hook  # type: ignore[method-assign, union-attr]
    except AttributeError:
        return spec
    return spec


def _prepare(name: str) -> None:
    """Set variables of the framework to our defaults; those that the project sets stay."""
    if name == "crewai":
        from .crewai_events import DEFAULTS
    elif name == "smolagents":
        from .agents.smolagents_steps import DEFAULTS
    else:
        from .agents.openai_agents import DEFAULTS
    for variable, value in DEFAULTS.items():
        os.environ.setdefault(variable, value)


def _install(name: str, module: ModuleType) -> None:
    """Install the hook; never raises: an unknown version loses its events, but does not fail the run."""
    try:
        match _HOOKED_MODULES[name]:
            case "crewai":
                from . import crewai_events

                crewai_events.hook_event_bus(module)
            case "crewai_traces":
                from . import crewai_events

                crewai_events.skip_first_traces(module)
            case "langchain":
                from . import langchain_callbacks

                langchain_callbacks.install_handler(module)
            case "openai_agents":
                from .agents import openai_agents

                openai_agents.install_hooks(module)
            case "smolagents":
                from .agents import smolagents_steps

                smolagents_steps.wrap_agents(module)
            case "autogen_agents":
                from .agents import autogen_agents

                autogen_agents.wrap_agents(module)
            case "autogen_tools":
                from .agents import autogen_agents

                autogen_agents.wrap_tools(module)
            case "adk_agents":
                from .agents import adk_agents

                adk_agents.wrap_agents(module)
            case "adk_plugins":
                from .agents import adk_agents

                adk_agents.install_plugin(module)
            case "logging":
                from .. import logging_bridge

                logging_bridge.install()
            case "llama_index":
                from .agents import llama_index_events

                llama_index_events.install_handler(module)
            case _:
                from .agents import pydantic_ai_spans

                pydantic_ai_spans.install_tracer(module)
    except Exception as error:
        print(f"crewyard: no events of {name}: {type(error).__name__}: {error}", file=sys.stderr)
