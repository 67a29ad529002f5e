"""Waits for the frameworks to be imported, wherever the crew does it, and joins them then. Called by `crew`.

A crew that imports none of them pays for two comparisons per import; nothing else of ours is loaded before.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def start() -> None:
    """From here on the frameworks' events are the run's. Call it before the crew's first import."""
    sys.meta_path.insert(0, _Watch())
    for name in ("crewai", *_JOINED):
        if name in sys.modules:  # imported by a .pth file, before anything of the crew's
            _prepare() if name == "crewai" else _join(name, sys.modules[name])


# The module after whose execution we join -> ours. CrewAI's bus lay elsewhere before 0.150.
_JOINED = {
    "crewai.events.event_bus": "of_crewai",
    "crewai.utilities.events.crewai_event_bus": "of_crewai",
    "langchain_core.callbacks.manager": "of_langchain",
}


class _Watch:
    """A finder that finds by the others, and adds our step after the execution of a module."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "crewai":
            _prepare()
        if name not in _JOINED:
            return None
        for finder in [one for one in sys.meta_path if one is not self]:
            spec: ModuleSpec | None = finder.find_spec(name, path, target)
            if spec is not None:
                return _followed(spec)
        return None


def _followed(spec: ModuleSpec) -> ModuleSpec:
    execute = getattr(spec.loader, "exec_module", None)
    if execute is None:
        return spec

    def then_join(module: ModuleType) -> None:
        execute(module)
        _join(spec.name, module)

    try:
        # On the loader itself, so that it stays what inspect and importlib.resources expect it to be.
        spec.loader.exec_module = then_join  # type: ignore[method-assign, union-attr]
    except AttributeError:
        return spec
    return spec


def _prepare() -> None:
    from .crewai_events import settle

    settle()


def _join(name: str, module: ModuleType) -> None:
    """Never raises: a version that we do not know costs its events, not the run."""
    try:
        if _JOINED[name] == "of_crewai":
            from . import crewai_events

            crewai_events.join(module)
        else:
            from . import langchain_callbacks

            langchain_callbacks.join()
    except Exception as error:
        print(f"crewyard: no events of {name}: {type(error).__name__}: {error}", file=sys.stderr)
